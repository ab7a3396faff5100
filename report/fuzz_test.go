package report

import (
	"bytes"
	"io"
	"testing"

	lies "github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
	"github.com/mcompress/mcompress/pass"
)

// forms is the bound of a report that is written in each form: an empty row of its lists is three bytes, and kilobytes of
// tables and charts.
var forms = oracle.Bound{Memory: 2 * oracle.Linear.Memory, MemoryPerByte: 16 << 10, Time: 5 * oracle.Linear.Time, TimePerByte: 5 * oracle.Linear.TimePerByte}

// A report that is accepted has all forms, and is the same report if it is read again.
func FuzzReport(f *testing.F) {
	r, err := Build(f.Context(), (&job{
		model: network(odd()), methods: []*pass.Method{halving, rounding},
		in: Input{Errors: true, Recipe: &Recipe{Text: "steps:\n"}},
	}).input(f))
	if err != nil {
		f.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.JSON(&text); err != nil {
		f.Fatal(err)
	}
	lies.Seed(f, lies.Some(lies.JSON(text.String()), 400), text.String())
	f.Fuzz(func(t *testing.T, text []byte) {
		forms.Check(t, len(text), func() {
			r, err := Read(bytes.NewReader(text))
			if err != nil {
				return
			}
			var once, twice bytes.Buffer
			if err := r.JSON(&once); err != nil {
				return // numbers that JSON does not have cannot be read either
			}
			again, err := Read(bytes.NewReader(once.Bytes()))
			if err == nil {
				err = again.JSON(&twice)
			}
			if err != nil || !bytes.Equal(once.Bytes(), twice.Bytes()) {
				t.Errorf("%s becomes %s, %v", once.Bytes(), twice.Bytes(), err)
			}
			for _, format := range Formats() {
				_ = format.Write(r, io.Discard, Card{})
			}
		})
	})
}
