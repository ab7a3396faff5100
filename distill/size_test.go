package distill

import "testing"

func TestSizesOfMemory(t *testing.T) {
	for text, want := range map[string]Size{"1": 1, "1GiB": 1 << 30, "500MB": 500e6, "1.5 kib": 1536, "4EiB": 1 << 62} {
		var s Size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q is %d (%v), want %d", text, s, err, want)
		}
		var again Size
		if err := again.Set(s.String()); err != nil || again != s && text != "500MB" { // String has three digits
			t.Errorf("%d is written %q, which is %d (%v)", s, s.String(), again, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "some", "4.1EiB", "7EiB", "9EB", "99999999999999999999"} {
		s := Size(3)
		if err := s.Set(text); err == nil || s != 3 {
			t.Errorf("%q is accepted as %d", text, s)
		}
	}
}
