package hostile

import "testing"

// Seed adds texts of lies to the corpus of a fuzz target, and those that a decoder accepts.
func Seed(f *testing.F, lies []Lie, valid ...string) {
	for _, text := range valid {
		f.Add([]byte(text))
	}
	for _, l := range lies {
		f.Add([]byte(l.Text))
	}
}
