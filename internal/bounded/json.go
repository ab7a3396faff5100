package bounded

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is the maximum number of open lists and objects of a text.
const maxDepth = 100

// JSON decodes the only value of text into v, as json.Unmarshal does. A text whose values take more memory than the
// limit, or are nested deeper than 100 levels, is an *Error; no memory is taken for it.
func JSON(text []byte, v any) error {
	if err := checkJSON(text, v); err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// StrictJSON is JSON for texts of the same version of the program: unknown fields are errors.
func StrictJSON(text []byte, v any) error {
	if err := checkJSON(text, v); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errorf("more follows the value")
	}
	return nil
}

// ReadJSON is JSON for the text that a reader has, of at most limit bytes.
func ReadJSON(r io.Reader, limit int64, v any) error {
	text, err := Read(r, limit)
	if err != nil {
		return err
	}
	return JSON(text, v)
}

// Tokens returns a decoder of the tokens of a text, which compares the names of each object by default.
func Tokens(text []byte, options ...jsontext.Options) (*jsontext.Decoder, error) {
	w := &walker{text: text, budget: NewBudget()}
	if err := w.value(names); err != nil {
		return nil, err
	}
	return jsontext.NewDecoder(bytes.NewBuffer(text), options...), nil
}

// A walker follows a text next to the type that it is decoded into, and charges what the decoder allocates. A text that
// is not valid JSON is followed anyhow: json.Unmarshal allocates nothing before it has validated all of it.
type walker struct {
	text   []byte
	at     int
	depth  int
	budget *Budget
}

func checkJSON(text []byte, v any) error {
	w := &walker{text: text, budget: NewBudget()}
	if err := w.budget.Take(int64(len(text))); err != nil {
		return err
	}
	return w.value(formOf(v))
}

// value follows one value.
func (w *walker) value(f *form) error {
	w.spaces()
	if w.at >= len(w.text) {
		return nil
	}
	start := w.at
	switch c := w.text[w.at]; c {
	case '{', '[':
		if w.depth++; w.depth > maxDepth {
			return errorf("nested deeper than %d levels", maxDepth)
		}
		defer func() { w.depth-- }()
		w.at++
		own := f.own
		if c == '{' {
			own = f.object
		}
		if err := w.budget.Take(own); err != nil {
			return err
		}
		if err := w.items(f, c); err != nil {
			return err
		}
	case '"':
		if s := w.quoted(); f.keeps {
			return w.budget.Take(f.own + int64(len(s)))
		}
	default:
		for w.at < len(w.text) && strings.IndexByte(" \t\r\n,:]}", w.text[w.at]) < 0 {
			w.at++
		}
		// At a stray bracket nothing would advance; the text is not valid.
		w.at = max(w.at, start+1)
	}
	if f.raw {
		return w.budget.Take(f.scalar + int64(w.at-start))
	}
	return w.budget.Take(f.scalar)
}

// items follows the items of a list or object up to its end.
func (w *walker) items(f *form, open byte) error {
	for {
		w.spaces()
		if w.at >= len(w.text) {
			return nil
		}
		switch w.text[w.at] {
		case '}', ']':
			w.at++
			return nil
		case ',':
			w.at++
			continue
		}
		item, charge := f.item(), f.perItem
		if open == '{' {
			key := w.key()
			item, charge = f.member(key), f.perMember
			if charge > 0 {
				charge += int64(len(key))
			}
		}
		if err := w.budget.Take(charge); err != nil {
			return err
		}
		if err := w.value(item); err != nil {
			return err
		}
	}
}

// key follows the key of a member and its colon.
func (w *walker) key() (key []byte) {
	if start := w.at; w.text[start] == '"' {
		key = w.quoted()
		// The decoder compares keys without their escapes.
		if bytes.IndexByte(key, '\\') >= 0 {
			var plain string
			_ = json.Unmarshal(w.text[start:w.at], &plain)
			key = []byte(plain)
		}
	}
	w.spaces()
	if w.at < len(w.text) && w.text[w.at] == ':' {
		w.at++
	}
	return key
}

// quoted follows a string and returns its text between the quotes.
func (w *walker) quoted() []byte {
	start := w.at + 1
	for i := start; ; i++ {
		switch {
		case i >= len(w.text):
			w.at = len(w.text)
			return w.text[start:]
		case w.text[i] == '"':
			w.at = i + 1
			return w.text[start:i]
		case w.text[i] == '\\':
			i++ // what it escapes
		}
	}
}

func (w *walker) spaces() {
	for w.at < len(w.text) {
		switch w.text[w.at] {
		case ' ', '\t', '\r', '\n':
			w.at++
		default:
			return
		}
	}
}
