package metric

import (
	"bufio"
	"fmt"
	"os"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// newCER is the character error rate: the sum of the edit distances (Levenshtein) of predictions to labels, divided by
// the number of characters of the labels. Predictions are strings, classes, or scores by time step, of which each
// step's best class is taken, repetitions are merged and blanks are removed (greedy CTC decoding; Graves et al., ICML
// 2006). Labels are strings, which require the characters of the classes, or classes, of which negative ones do not
// count.
func newCER(o options) (Scorer, error) {
	blank, err := o.number("blank", -1, 1<<31, 0)
	if err != nil {
		return nil, err
	}
	d := &decoder{blank: int64(blank)}
	if path := o["charset"]; path != "" {
		if d.characters, err = readCharset(path); err != nil {
			return nil, err
		}
	}
	return &mean{ratios: d.errors}, nil
}

// A decoder turns outputs into texts.
type decoder struct {
	blank      int64            // -1 for outputs that are no CTC scores
	characters map[string]int64 // classes of characters, without the blank; nil if labels are classes
}

// maxCharset bounds a file of characters in lines.
const maxCharset = 1 << 20

// readCharset reads a file with a character in each line, in the order of classes without the blank.
func readCharset(path string) (map[string]int64, error) {
	st, err := os.Stat(path)
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := map[string]int64{}
	lines := bufio.NewScanner(f)
	n := int64(0)
	for ; lines.Scan(); n++ {
		if n == maxCharset {
			return nil, fmt.Errorf("%s: more than %d lines", path, maxCharset)
		}
		if _, ok := all[lines.Text()]; !ok {
			all[lines.Text()] = n
		}
	}
	return all, lines.Err()
}

// errors are the edit distances and the lengths of the labels.
func (d *decoder) errors(b *Batch, out outputs) ([]ratio, error) {
	predicted, text, err := d.decode(b, out)
	if err != nil {
		return nil, err
	}
	labels, err := d.labels(b, text)
	if err != nil {
		return nil, err
	}
	all := make([]ratio, b.N)
	for i := range all {
		all[i] = ratio{float64(editDistance(labels[i], predicted[i])), float64(len(labels[i]))}
	}
	return all, nil
}

// decode is the text of each sample as numbers: of characters if the output holds strings (text is set), else of
// classes.
func (d *decoder) decode(b *Batch, out outputs) (texts [][]int64, text bool, err error) {
	for _, name := range b.Outputs {
		a := out[name]
		switch {
		case a == nil || a.Kind != ir.Dense:
		case a.DType == ir.String && len(a.Text) == b.N:
			return runesOf(a.Text), true, nil
		case floating(a):
			if texts := d.ctc(a, b.N); texts != nil {
				return texts, false, nil
			}
		case readable(a) && rows(a, b.N) != nil:
			return integers(rows(a, b.N)), false, nil
		}
	}
	return nil, false, inapplicable("no output has strings, classes or scores by time step; name the output with --scores")
}

// ctc decodes scores of samples by time steps by classes, or of time steps by samples by classes; nil for other shapes.
func (d *decoder) ctc(a *ir.Array, n int) [][]int64 {
	if n == 1 && len(a.Shape) == 2 {
		a = &ir.Array{DType: a.DType, Shape: []int64{1, a.Shape[0], a.Shape[1]}, Data: a.Data}
	}
	if len(a.Shape) != 3 || a.Shape[2] < 2 || a.Shape[0] != int64(n) && a.Shape[1] != int64(n) {
		return nil
	}
	// The strides of Top1's rows: samples come first, or time steps do.
	best, steps, sample, step := Top1(a), int(a.Shape[1]), int(a.Shape[1]), 1
	if a.Shape[0] != int64(n) {
		steps, sample, step = int(a.Shape[0]), 1, n
	}
	out := make([][]int64, n)
	for i := range out {
		last := int64(noClass)
		for t := range steps {
			class := best[i*sample+t*step]
			if class != last && class != d.blank {
				out[i] = append(out[i], class)
			}
			// A blank between two equal classes keeps both, so that it is remembered, too.
			last = class
		}
	}
	return out
}

// labels are the texts of the labels, in the numbers of the predictions.
func (d *decoder) labels(b *Batch, text bool) ([][]int64, error) {
	if b.Labels.DType != ir.String {
		if text {
			return nil, inapplicable("the output holds strings; labels are %s", b.Labels)
		}
		all, err := classLabels(b)
		for i := range all {
			all[i] = slices.DeleteFunc(all[i], func(c int64) bool { return c < 0 })
		}
		return all, err
	}
	if len(b.Labels.Text) != b.N {
		return nil, inapplicable("labels are %s; it needs one text for each sample", b.Labels)
	}
	texts := runesOf(b.Labels.Text)
	if text {
		return texts, nil
	}
	if d.characters == nil {
		return nil, inapplicable("labels are texts, and the output holds classes; name the file of their characters, one " +
			"in a line: cer:charset=FILE")
	}
	for _, row := range texts {
		for k, r := range row {
			// Texts become classes, as the predictions are.
			row[k] = d.class(string(rune(r)))
		}
	}
	return texts, nil
}

// class is the class of a character: lines count from 0 and leave out the blank. A character that is not in the file is
// no class.
func (d *decoder) class(character string) int64 {
	at, ok := d.characters[character]
	switch {
	case !ok:
		return noClass - 1
	case d.blank >= 0 && at >= d.blank:
		return at + 1
	}
	return at
}

func runesOf(texts []string) [][]int64 {
	out := make([][]int64, len(texts))
	for i, s := range texts {
		for _, r := range s {
			out[i] = append(out[i], int64(r))
		}
	}
	return out
}

// integers are rows of classes without negative ones.
func integers(rows [][]float64) [][]int64 {
	out := make([][]int64, len(rows))
	for i, row := range rows {
		for _, x := range row {
			if x >= 0 {
				out[i] = append(out[i], int64(x))
			}
		}
	}
	return out
}

// editDistance is the minimum number of insertions, deletions and substitutions that turn a into b, in memory of the
// length of b.
func editDistance(a, b []int64) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			cost := diagonal
			if x != y {
				cost++
			}
			// The row still has the distances of the previous character of a here.
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
