package dataset

import (
	"errors"
	"image/color"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/pass"
)

const animals = "u,labels\n1,dog\n2,ant\n3,cat\n"

// classesOf are the labels of a CSV file with these classes.
func classesOf(t *testing.T, text string, classes []string) ([]int64, error) {
	t.Helper()
	s, err := Open(file(t, "test.csv", []byte(text)), inputs(input("x", "float[n,1]")), nil, Options{Classes: classes})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return all(t, s, Order{Size: 9})[0].Classes(), nil
}

func TestWordsHaveTheNumbersOfTheTrainingData(t *testing.T) {
	names, err := ClassNames(file(t, "train.csv", []byte(animals)), Options{})
	if err != nil || !slices.Equal(names, []string{"ant", "cat", "dog"}) {
		t.Fatal(names, err)
	}
	const test = "u,labels\n1,dog\n2,cat\n"
	if got, err := classesOf(t, test, names); err != nil || !slices.Equal(got, []int64{2, 1}) {
		t.Errorf("labels %v of the classes of the training data: %v", got, err)
	}
	if got, err := classesOf(t, test, nil); err != nil || !slices.Equal(got, []int64{1, 0}) {
		t.Errorf("labels %v of classes of their own: %v", got, err)
	}
	_, err = classesOf(t, "u,labels\n1,bee\n", names)
	requireError(t, err, "test.csv", `"bee"`, `"ant", "cat", "dog"`)
}

func TestWordsAreNoNumbers(t *testing.T) {
	names, err := ClassNames(file(t, "train.csv", []byte("u,labels\n1,0\n2,1\n")), Options{})
	if err != nil || names == nil || len(names) > 0 {
		t.Fatal(names, err)
	}
	_, err = classesOf(t, animals, names)
	requireError(t, err, "test.csv", `"ant"`, "numbers")
	if got, err := classesOf(t, "u,labels\n1,1\n", names); err != nil || !slices.Equal(got, []int64{1}) {
		t.Errorf("labels %v: %v", got, err)
	}
}

func TestDataWithoutLabelsHasNoClasses(t *testing.T) {
	for _, path := range []string{file(t, "a.csv", []byte("1,2\n")), file(t, "a.npy", []byte(npyMagic))} {
		if names, err := ClassNames(path, Options{}); err != nil || names != nil {
			t.Error(path, names, err)
		}
	}
}

func TestFoldersHaveTheNumbersOfTheTrainingData(t *testing.T) {
	train, test := t.TempDir(), t.TempDir()
	grey := func(int, int) color.Color { return color.Gray{} }
	for _, path := range []string{filepath.Join(train, "ant/1.png"), filepath.Join(train, "dog/1.png"),
		filepath.Join(test, "dog/2.png")} {
		write(t, path, pngOf(t, drawn(4, 4, grey)))
	}
	names, err := ClassNames(train, Options{})
	if err != nil || !slices.Equal(names, []string{"ant", "dog"}) {
		t.Fatal(names, err)
	}
	s := mustOpen(t, test, inputs(input("x", "uint8[n,1,4,4]")), nil, Options{Classes: names})
	if got := all(t, s, Order{Size: 1})[0].Classes(); !slices.Equal(got, []int64{1}) {
		t.Errorf("labels %v", got)
	}
}

// A name stands for one class, and an image has one label.
func TestClassesAreUnambiguous(t *testing.T) {
	_, err := classesOf(t, animals, []string{"ant", "cat", "ant", "dog"})
	if requireError(t, err, `"ant" is named twice`); !errors.As(err, new(*pass.OptionError)) {
		t.Errorf("%v is no error of an option", err)
	}
	folder := t.TempDir()
	write(t, filepath.Join(folder, "ant/1.png"), pngOf(t, drawn(4, 4, func(int, int) color.Color { return color.Gray{} })))
	for labels, want := range map[string]string{"label": "", file(t, "labels.npy", []byte(npyMagic)): "two labels"} {
		s, err := Open(folder, inputs(input("x", "uint8[n,1,4,4]")), nil, Options{Labels: labels})
		if want != "" {
			requireError(t, err, want)
			continue
		}
		if err != nil {
			t.Fatal(err) // the name of an array is for other data, too
		}
		s.Close()
	}
}
