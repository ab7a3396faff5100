package report

import (
	"bytes"
	"encoding/json"
	"testing"
)

func FuzzAppendIndented(f *testing.F) {
	for _, text := range []string{`{}`, `[]`, `[{}]`, `{"a":[1,-2.5e9,true,null],"b":{"c":"x"},"d":[],"e":{}}`, `"{[,:]}"`, `"\"\\"`, `{"\\":"\\\"","":[[[]]]}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var compact, want bytes.Buffer
		if json.Compact(&compact, []byte(text)) != nil {
			t.Skip("not JSON")
		}
		if err := json.Indent(&want, compact.Bytes(), "    ", "  "); err != nil {
			t.Fatal(err)
		}
		if got := appendIndented(nil, compact.Bytes(), "    "); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("got\n%s\nwant\n%s", got, want.Bytes())
		}
	})
}
