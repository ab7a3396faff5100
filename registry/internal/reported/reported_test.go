package reported

import (
	"fmt"
	"strings"
	"testing"
)

// Only the fields that are wanted are decoded, wherever they are, and a report that is cut or has another type there is
// an error.
func TestFieldsOfAReport(t *testing.T) {
	for text, want := range map[string]string{
		`{"x": {"a": [1, {"b": []}], "c": "}"}, "a": 1, "y": [[], {}], "b": 2, "rest": }`: "1 2",
		`{"b": 2, "a": 1}`: "1 2", `{"a": 1}`: "1 0", `{}`: "0 0", `{"x": [`: "error", `{"a": "text", "b": 1}`: "error",
		`[1]`: "error", ``: "error", `{"a": 1, 5`: "error",
	} {
		var a, b int
		err := Decode(strings.NewReader(text), map[string]any{"a": &a, "b": &b})
		if got := fmt.Sprint(a, b); (err != nil) != (want == "error") || err == nil && got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
