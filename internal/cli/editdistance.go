package cli

import "unicode/utf8"

// Nearest is the closest of words by edit distance, or "" if more than a third of word
// differs.
func Nearest(word string, words []string) string {
	best, most := "", utf8.RuneCountInString(word)/3
	for _, w := range words {
		if d := distance(word, w); d <= most {
			best, most = w, d-1
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
