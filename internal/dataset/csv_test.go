package dataset

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestIris(t *testing.T) {
	path := sharedFile(t, "datasets", "iris", "iris.csv")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(b)), "\n")[1:]
	in, _ := model(t, "tabular/sklearn_randomforest")
	s := mustOpen(t, path, in, nil, Options{Labels: "species"})
	if want := []string{"setosa", "versicolor", "virginica"}; !slices.Equal(s.ClassNames(), want) {
		t.Errorf("classes %q", s.ClassNames())
	}
	seen := 0
	for _, b := range all(t, s, Order{Size: 32, Shuffle: false}) {
		x := ir.View[float32](b.Inputs["X"])
		for i, label := range b.Classes() {
			cells := strings.Split(strings.TrimSpace(rows[seen]), ",")
			for j := range 4 {
				want, err := strconv.ParseFloat(cells[j], 32)
				if err != nil || x[4*i+j] != float32(want) {
					t.Errorf("row %d, column %d: %v, want %v (%v)", seen, j, x[4*i+j], want, err)
				}
			}
			if s.ClassNames()[label] != cells[4] {
				t.Errorf("row %d: %s, want %s", seen, s.ClassNames()[label], cells[4])
			}
			seen++
		}
	}
	if seen != len(rows) || s.Len() != len(rows) {
		t.Errorf("%d rows of %d", seen, len(rows))
	}
}

func TestCSVColumns(t *testing.T) {
	row := inputs(input("x", "float[n,2]"))
	for _, tt := range []struct {
		name, file, text string
		o                Options
		want             []float32
		labels           []int64
	}{
		{"no header", "a.csv", "1,2\n3,4\n", Options{}, []float32{1, 2, 3, 4}, nil},
		{"a header", "a.csv", "u,v\n1,2\n", Options{}, []float32{1, 2}, nil},
		{"labels by their usual name", "a.csv", "u,labels,v\n1,7,2\n", Options{}, []float32{1, 2}, []int64{7}},
		{"labels by name", "a.csv", "y,u,v\n-3,1,2\n", Options{Labels: "y"}, []float32{1, 2}, []int64{-3}},
		{"labels by number", "a.csv", "1,2,9\n3,4,8\n", Options{Labels: "2"}, []float32{1, 2, 3, 4}, []int64{9, 8}},
		{"columns of numbers as names", "a.csv", "0,1,y\n1,2,9\n", Options{Labels: "y"}, []float32{1, 2}, []int64{9}},
		{"words for labels", "a.csv", "1,2,no\n3,4,yes\n5,6,no\n", Options{Labels: "2"}, []float32{1, 2, 3, 4, 5, 6},
			[]int64{0, 1, 0}},
		{"words in another order", "a.csv", "1,2,b\n3,4,a\n", Options{Labels: "2"}, []float32{1, 2, 3, 4}, []int64{1, 0}},
		{"some columns", "a.csv", "u,v,w\n1,2,3\n", Options{Columns: []string{"w", "0"}}, []float32{3, 1}, nil},
		{"tabs", "a.tsv", "1\t2\n", Options{}, []float32{1, 2}, nil},
		{"semicolons", "a.csv", "u;v\n1;2\n", Options{}, []float32{1, 2}, nil},
		{"quotes, spaces and a mark", "a.csv", "\ufeff\"u\",v\r\n\"1\", 2\r\n", Options{}, []float32{1, 2}, nil},
		{"scaled", "a.csv", "1,2\n", Options{Scale: 2, Mean: []float64{1, 2}, Std: []float64{2, 4}},
			[]float32{0.5, 0.5}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := all(t, mustOpen(t, file(t, tt.file, []byte(tt.text)), row, nil, tt.o), Order{Size: 9})[0]
			if got := ir.View[float32](b.Inputs["x"]); !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
			if got := b.Classes(); !slices.Equal(got, tt.labels) {
				t.Errorf("labels %v, want %v", got, tt.labels)
			}
		})
	}
}

// A model of several inputs reads each from the column of its name.
func TestCSVOfSeveralInputs(t *testing.T) {
	path := file(t, "a.csv.gz", gzipped([]byte("b,labels,a\n1,0.5,2\n3,0.25,4\n")))
	s := mustOpen(t, path, inputs(input("a", "int64[n,1]"), input("b", "float[n]")), nil, Options{})
	b := all(t, s, Order{Size: 2})[0]
	if x := b.Inputs["a"]; !slices.Equal(ir.View[int64](x), []int64{2, 4}) || len(x.Shape) != 2 {
		t.Errorf("a is %v %s", ir.View[int64](x), x)
	}
	if x := b.Inputs["b"]; !slices.Equal(ir.View[float32](x), []float32{1, 3}) || len(x.Shape) != 1 {
		t.Errorf("b is %v %s", ir.View[float32](x), x)
	}
	if got := ir.View[float64](b.Labels); !slices.Equal(got, []float64{0.5, 0.25}) || b.Classes() != nil {
		t.Errorf("labels %v", got)
	}
}

func TestBadCSV(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		o          Options
		want       []string
	}{
		{"nothing", "", Options{}, []string{"no samples"}},
		{"a header only", "u,v\n", Options{}, []string{"no samples"}},
		{"a word", "1,2\n3,x\n", Options{}, []string{"row 2, column 1", `"x" is not a number`}},
		{"an empty cell", "1,2\n3,\n", Options{}, []string{`"" is not a number`}},
		{"rows of different lengths", "1,2\n3\n", Options{}, []string{"line 2"}},
		{"an open quote", "1,\"2\n" + strings.Repeat("x\n", maxRecord/2), Options{}, []string{"unclosed quote"}},
		{"an integer of 17 digits", "1,90071992547409931\n", Options{}, []string{".npz"}},
		{"no such label", "u,v\n1,2\n", Options{Labels: "w"}, []string{`"w"`, `"u", "v"`}},
		{"no such column", "u,v\n1,2\n", Options{Columns: []string{"2"}}, []string{`"2"`}},
		{"labels only", "1\n2\n", Options{Labels: "0"}, []string{"no columns"}},
		{"words among labels of numbers", "1,2\n3,x\n", Options{Labels: "1"}, []string{"row 2", `label "x"`}},
		{"another width than the model's", "1,2,3\n", Options{}, []string{"[3]", "float[n,2]", "--reshape"}},
		{"infinite once it is float", "1,1e300\n", Options{}, []string{"sample 0", "1e+300 does not fit float"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Open(file(t, "a.csv", []byte(tt.text)), inputs(input("x", "float[n,2]")), nil, tt.o)
			if err == nil {
				defer s.Close()
				for _, err = range s.Batches(t.Context(), Order{}) {
				}
			}
			requireError(t, err, append(tt.want, "a.csv")...)
		})
	}
}

// No file causes a panic.
func FuzzCSV(f *testing.F) {
	f.Add([]byte("u,labels\n1,2\n3,4\n"))
	f.Add([]byte("1;2\n\"3\";4\n"))
	f.Add(gzipped([]byte("1,2\n")))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		files.Check(t, len(b), func() { readAll(t, dir, "x.csv", b, Input{Name: "x"}) })
	})
}
