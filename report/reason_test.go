package report

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/pass"
)

// Each code has a sentence, and the schema lists all of them.
func TestCodesOfReasons(t *testing.T) {
	for _, c := range pass.Codes() {
		if _, ok := sentences[c]; !ok {
			t.Errorf("%s has no sentence", c)
		}
	}
	if len(sentences) != len(pass.Codes()) {
		t.Errorf("%d sentences for %d codes", len(sentences), len(pass.Codes()))
	}
	text, err := os.ReadFile("../docs/report-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs struct {
			Reason, Note struct {
				Properties struct {
					Code struct {
						Enum []pass.Code `json:"enum"`
					} `json:"code"`
				} `json:"properties"`
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for _, got := range [][]pass.Code{schema.Defs.Reason.Properties.Code.Enum, schema.Defs.Note.Properties.Code.Enum} {
		if !slices.Equal(got, pass.Codes()) {
			t.Errorf("the schema lists %v, want %v", got, pass.Codes())
		}
	}
}

func TestSentences(t *testing.T) {
	for _, c := range []struct {
		reason        Reason
		text, general string
	}{
		{Reason{Code: pass.Bias, Node: "Gemm fc1"}, "bias of Gemm fc1, kept in float", "bias of Gemm, kept in float"},
		{Reason{Code: pass.Larger, Detail: "64 bytes → 80 bytes"}, "would become larger: 64 bytes → 80 bytes", "would become larger"},
		{Reason{Code: pass.Other, Detail: "a text: of its own"}, "a text: of its own", "a text: of its own"},
		{Reason{}, "", ""},
	} {
		if text, general := c.reason.String(), c.reason.General().String(); text != c.text || general != c.general {
			t.Errorf("got %q and %q, want %q and %q", text, general, c.text, c.general)
		}
	}
}
