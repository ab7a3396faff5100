package dataset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// ClassNames are the names of the classes in data, in the order of their numbers: the words among its labels, or the
// folders of images. They are empty if labels are numbers, and nil if the data has none. Options.Classes numbers the
// labels of other data in the same way.
func ClassNames(data string, o Options) ([]string, error) {
	paths := paths(data)
	at, err := locate(paths[0])
	switch {
	case err != nil:
		return nil, err
	case at.isRuns():
		return nil, nil
	case at.isImages():
		folders, err := imageClasses(data)
		if folders != nil || err != nil || o.Labels == "" {
			return folders.names(), err
		}
	}
	s, err := labelsOf(at, paths, o)
	if s == nil {
		return nil, err
	}
	defer s.close()
	if err != nil || s.labels == nil {
		return nil, err
	}
	row := s.labels.row()
	if row.DType != ir.String || elems(row.Shape) != 1 || s.classes != nil {
		// Not nil even if it is empty: there are labels, which are numbers.
		return append([]string{}, s.classes...), nil
	}
	words, err := wordsOf(s.labels)
	slices.Sort(words)
	return slices.Compact(words), err
}

// labelsOf opens the labels of data that is not images; samples may be nil.
func labelsOf(at location, paths []string, o Options) (s *samples, err error) {
	switch {
	case isCSV(at):
		return openCSV(paths[0], o)
	case starts("PK")(at):
		s, err = openNPZ(paths[0], nil)
	case at.hasExtension(".npy"):
		s, err = openArrays(paths[0])
	default:
		s = &samples{path: paths[0]}
	}
	if err != nil {
		return s, err
	}
	if len(paths) == 2 && s.open == nil {
		s.labels, err = s.labelFile(paths[1])
	}
	if s.labels == nil && err == nil {
		err = s.takeLabels(o.Labels)
	}
	return s, err
}

// UnionOfClasses are the names of the classes in two sets of data, those of training and of test, in the order of their
// numbers in both. If those of training are numbers, no name is one of them.
func UnionOfClasses(training, test []string) []string {
	if training != nil && len(training) == 0 {
		return training
	}
	union := slices.Concat(training, test)
	slices.Sort(union)
	return slices.Compact(union)
}

// numberClasses are the numbers of the classes with these names, which are sorted, and the names of all classes.
func (o Options) numberClasses(path string, names []string) (numbers []int64, classes []string, err error) {
	classes = o.Classes
	if classes == nil {
		classes = names
	}
	for _, name := range names {
		at := slices.Index(classes, name)
		switch {
		case at < 0 && len(classes) == 0:
			return nil, nil, fmt.Errorf("%s: label %q is not a number, but the labels of the training or calibration data "+
				"are numbers", path, name)
		case at < 0:
			return nil, nil, fmt.Errorf("%s: label %q is none of the classes; they are %s", path, name, someOf(classes))
		}
		numbers = append(numbers, int64(at))
	}
	return numbers, classes, nil
}

// someOf quotes the first names of a list.
func someOf(names []string) string {
	const most = 8
	if len(names) <= most {
		return quoteList(names)
	}
	return strings.Join([]string{quoteList(names[:most]), fmt.Sprintf("and %d more", len(names)-most)}, " ")
}
