package weights

import "github.com/mcompress/mcompress/ir"

// Lookups are the uses of v by Gather that look up its rows, which a form may look up as they are stored; all reports
// whether v has no others.
func Lookups(v *ir.Value) (lookups []*Consumer, all bool) {
	us, reason := Uses(v)
	if !reason.None() {
		return nil, false
	}
	for _, u := range us {
		if s := u.Consumer; s != nil && s.Side == Lookup && s.Unsupported.None() && !s.Transposed {
			lookups = append(lookups, s)
		}
	}
	return lookups, len(lookups) == len(us)
}
