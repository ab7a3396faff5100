package hostile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Lie is content with one change.
type Lie struct {
	Name string // the place and the change
	Text string
}

// JSON returns the lies of a JSON text: each of its values is replaced by each of some others, is absent, and appears
// twice. The text must be valid.
func JSON(text string) []Lie {
	p := &parser{text: text, decoder: json.NewDecoder(strings.NewReader(text))}
	p.decoder.UseNumber()
	if err := p.value("", -1); err != nil {
		panic(fmt.Sprintf("%v: %s", err, text))
	}
	var list []Lie
	for _, at := range p.places {
		value, before := text[at.start:at.end], text[:at.start]
		add := func(change, before, value string) {
			list = append(list, Lie{at.path + " " + change, before + value + text[at.end:]})
		}
		for _, c := range replacements(value) {
			add(c.Name, before, c.Text)
		}
		if at.key < 0 {
			continue
		}
		// The key of a member, with its colon; nothing for an element of a list.
		key := text[at.key:at.start]
		add("twice", text[:at.key]+key+value+","+key, value)
		if key != "" {
			// Decoders that differ in which of two members counts see different documents.
			add("null and again", text[:at.key]+key+"null,"+key, value)
			add("absent", text[:at.key]+`"absent":`, value)
			add("in upper case", text[:at.key]+strings.ToUpper(key), value)
		}
	}
	return list
}

// replacements are the lies about a value, by its type.
func replacements(value string) []Lie {
	list := []Lie{
		{"null", "null"}, {"true", "true"}, {"an empty object", "{}"}, {"an empty list", "[]"}, {"cut", ""},
		{"deep lists", strings.Repeat("[", 20000) + strings.Repeat("]", 20000)},
		{"deep objects", strings.Repeat(`{"a":`, 12000) + "1" + strings.Repeat("}", 12000)},
		{"lists without end", strings.Repeat("[", 12000)},
	}
	switch value[0] {
	case '"':
		list = append(list, Lie{"a number", "1"}, Lie{"invalid UTF-8", "\"\xff\xfe\xc0\xaf\""}, Lie{"half of a pair", `"\ud800"`},
			Lie{"long", `"` + strings.Repeat("a", 40000) + `"`}, Lie{"no end", `"a`})
		for _, name := range Names() {
			text, _ := json.Marshal(name)
			list = append(list, Lie{fmt.Sprintf("%.20q", name), string(text)})
		}
	case '{':
		list = append(list, Lie{"many members", "{" + strings.Repeat(`"a":0,`, 5000) + `"a":0}`})
		if len(value) < 1000 {
			list = append(list, Lie{"two values", value + value})
		}
	case '[':
		list = append(list, Lie{"empty objects", "[" + strings.Repeat("{},", 10000) + "{}]"},
			Lie{"empty lists", "[" + strings.Repeat("[],", 10000) + "[]]"}, Lie{"nulls", "[" + strings.Repeat("null,", 8000) + "null]"})
	default:
		for _, n := range []string{
			"-1", "0", "1", "4294967296", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e308", "1e999", "-0.5",
			`"1"`, "0x10", "NaN", "1" + strings.Repeat("0", 5000),
		} {
			list = append(list, Lie{fmt.Sprintf("%.24s", n), n})
		}
	}
	return list
}

// A place is a value in a text, and the start of its key, which is that of the value in a list, and -1 for the whole.
type place struct {
	path            string
	key, start, end int
}

type parser struct {
	text    string
	decoder *json.Decoder
	places  []place
}

// value reads a value, after its key.
func (p *parser) value(path string, key int) error {
	at := len(p.places)
	start := p.skip()
	if key == noKey {
		key = start
	}
	p.places = append(p.places, place{path, key, start, 0})
	t, err := p.decoder.Token()
	if err != nil {
		return err
	}
	if open, ok := t.(json.Delim); ok {
		if err := p.items(path, open); err != nil {
			return err
		}
	}
	p.places[at].end = int(p.decoder.InputOffset())
	return nil
}

// noKey is the key of an element of a list.
const noKey = -2

// items reads the members or elements of a value, and its end.
func (p *parser) items(path string, open json.Delim) error {
	for i := 0; p.decoder.More(); i++ {
		key, name := noKey, fmt.Sprint(i)
		if open == '{' {
			key = p.skip()
			t, err := p.decoder.Token()
			if err != nil {
				return err
			}
			name = t.(string)
		}
		if err := p.value(path+"/"+name, key); err != nil {
			return err
		}
	}
	_, err := p.decoder.Token()
	return err
}

// skip is the offset of the next token.
func (p *parser) skip() int {
	i := int(p.decoder.InputOffset())
	for strings.IndexByte(" \t\r\n:,", p.text[i]) >= 0 {
		i++
	}
	return i
}

// Some are at most n of the lies, from all parts of the list.
func Some(lies []Lie, n int) []Lie {
	if len(lies) <= n {
		return lies
	}
	some := make([]Lie, n)
	for i := range some {
		some[i] = lies[i*len(lies)/n]
	}
	return slices.Clip(some)
}
