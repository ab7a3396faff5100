package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ClassNames are the names of the classes in data, in the order of their numbers: the words among the labels of a CSV file, or the folders of
// images. They are empty if labels are numbers, and nil if the data has none. Options.Classes numbers the labels of other data in the same
// way.
func ClassNames(data string, o Options) ([]string, error) {
	at, err := locate(data)
	if err != nil {
		return nil, err
	}
	switch {
	case at.isRuns():
		return nil, nil
	case at.head == nil && at.isImages():
		return imageClasses(data)
	case !isCSV(at):
		return nil, nil
	}
	s, err := openCSV(data, o)
	if err = errors.Join(err, s.close()); err != nil || s.labels == nil {
		return nil, err
	}
	return append([]string{}, s.classes...), nil
}

// imageClasses are the folders of images, nil if the images are not in folders.
func imageClasses(path string) ([]string, error) {
	files, folders, err := filesIn(path, imageEnds()...)
	if len(files) > 0 {
		return nil, err
	}
	return folders, err
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
			return nil, nil, fmt.Errorf("%s: label %q is not a number, but the labels of the training or calibration data are numbers", path, name)
		case at < 0:
			return nil, nil, fmt.Errorf("%s: label %q is not a class of the training or calibration data; its classes are %s", path, name, someOf(classes))
		}
		numbers = append(numbers, int64(at))
	}
	return numbers, classes, nil
}

// someOf quotes the first names of a list.
func someOf(names []string) string {
	const most = 8
	if len(names) <= most {
		return quoted(names)
	}
	return strings.Join([]string{quoted(names[:most]), fmt.Sprintf("and %d more", len(names)-most)}, " ")
}
