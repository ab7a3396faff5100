package bounded

import "strings"

// Limits of patterns. A matcher tries all combinations of the alternatives in braces, and of the folders that ** stands
// for.
const (
	maxAlternatives = 1024
	maxDoubleStars  = 4
)

// CheckPattern returns an *Error for a pattern of files or names that would take too long to match.
func CheckPattern(pattern string) error {
	all, stars := 1, 0
	var open []int // the alternatives of each open brace
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '*' && strings.HasPrefix(pattern[i:], "**"):
			stars++
			i++
		case c == '{':
			open = append(open, 1)
		case c == ',' && len(open) > 0:
			open[len(open)-1]++
		case c == '}' && len(open) > 0:
			// Alternatives within one of them do not multiply with its others: the product is an upper bound.
			all *= open[len(open)-1]
			open = open[:len(open)-1]
		}
		if all > maxAlternatives || stars > maxDoubleStars {
			return errorf("the pattern %.40q stands for too many others: it may have %d combinations of alternatives in braces, and ** %d times",
				pattern, maxAlternatives, maxDoubleStars)
		}
	}
	return nil
}
