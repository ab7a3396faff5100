package pass

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A field is a field of an option struct as a flag.Value.
type field struct {
	v              reflect.Value
	name           string
	usage          string
	def            string
	enum           []string
	not            bool // the option is the negation of the field
	list           bool // the value may be a list
	file           bool // the value is the path of a file or folder that the method reads
	outsideRecipes bool // not a part of recipes
}

// fieldsOf are the options of a struct, those of embedded structs included.
func fieldsOf(v reflect.Value) []*field {
	var list []*field
	shared := sharedTags(v.Type())
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		tags := fieldTags{sf.Tag, shared[sf.Name]}
		switch {
		case tags.get("flag") != "":
			list = append(list, newField(v.Field(i), sf, tags))
		case sf.Anonymous && sf.Type.Kind() == reflect.Struct:
			// Defaults first: they are given by the names in the group, which names replaces.
			group := fieldsOf(v.Field(i))
			redefine(group, sf.Tag.Get("defaults"))
			list = append(list, renamed(group, sf.Tag.Get("names"))...)
		}
	}
	return list
}

// fieldTags are the tags of a field, and of the equal field of a group of shared options. The first that has a key
// counts.
type fieldTags [2]reflect.StructTag

func (t fieldTags) get(key string) string { return cmp.Or(t[0].Get(key), t[1].Get(key)) }

// newField panics on an invalid declaration, which is a bug.
func newField(v reflect.Value, sf reflect.StructField, tags fieldTags) *field {
	name, not := strings.CutSuffix(tags.get("flag"), ",not")
	f := &field{v: v, name: name, not: not, usage: placeholder(tags.get("usage")), def: tags.get("default")}
	f.list, f.file, f.outsideRecipes = tags.get("list") == "yes", tags.get("file") == "yes", tags.get("recipe") == "no"
	if e := tags.get("enum"); e != "" {
		f.enum = strings.Split(e, ",")
	}
	switch {
	case !sf.IsExported():
		panic("option " + name + " is an unexported field")
	case f.value() == nil && !basic(f.kind()):
		panic(fmt.Sprintf("option %s has type %s", name, sf.Type))
	case f.enum != nil && f.kind() != reflect.String, not && sf.Type.Kind() != reflect.Bool:
		panic(fmt.Sprintf("option %s of type %s cannot have that tag", name, sf.Type))
	case sf.Type.Kind() == reflect.Bool && f.def != "":
		panic("option " + name + ": a boolean that is on by default is the negation of its field")
	}
	return f
}

func basic(k reflect.Kind) bool {
	switch k {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64, reflect.String:
		return true
	}
	return false
}

// redefine replaces defaults of a group's options.
func redefine(group []*field, tag string) {
	eachPair(group, tag, func(f *field, value string) { f.def = value })
}

// renamed are a group's options with other names, without those that are renamed to "-".
func renamed(group []*field, tag string) []*field {
	eachPair(group, tag, func(f *field, name string) { f.name = name })
	return slices.DeleteFunc(group, func(f *field) bool { return f.name == "-" })
}

// eachPair calls set for the option=value pairs of a tag of an embedded struct.
func eachPair(group []*field, tag string, set func(f *field, value string)) {
	if tag == "" {
		return
	}
	for pair := range strings.SplitSeq(tag, ",") {
		name, value, _ := strings.Cut(pair, "=")
		i := slices.IndexFunc(group, func(f *field) bool { return f.name == name })
		if i < 0 {
			panic("no embedded option " + name)
		}
		set(group[i], value)
	}
}

// placeholder puts words in single quotes in backquotes for package flag: tags cannot contain backquotes. A quote
// within a word is an apostrophe.
func placeholder(usage string) string {
	text := []byte(usage)
	for i := 0; i < len(text); i++ {
		if text[i] != '\'' || i > 0 && text[i-1] != ' ' && text[i-1] != '(' {
			continue
		}
		if n := bytes.IndexByte(text[i+1:], '\''); n > 0 {
			text[i], text[i+1+n] = '`', '`'
			i += 1 + n
		}
	}
	return string(text)
}

// kind is the kind of the field, or of its element if it is a pointer.
func (f *field) kind() reflect.Kind {
	if f.v.Kind() == reflect.Pointer {
		return f.v.Type().Elem().Kind()
	}
	return f.v.Kind()
}

// value is the field's own implementation of flag.Value, nil if it has none. For a nil pointer it is that of a new zero
// value.
func (f *field) value() flag.Value {
	p := f.v
	switch {
	case p.Kind() != reflect.Pointer:
		p = p.Addr()
	case p.IsNil():
		p = reflect.New(p.Type().Elem())
	}
	v, _ := p.Interface().(flag.Value)
	return v
}

func (f *field) option() Option { return Option{f.name, f.String(), f.file, f.list, f.outsideRecipes} }

// given reports whether the field has a value of its own.
func (f *field) given() bool { return !f.v.IsZero() }

// fallback is the text of the default.
func (f *field) fallback() string {
	switch {
	case f.def != "":
		return f.def
	case f.v.Kind() == reflect.Pointer:
		return ""
	}
	zero := *f
	zero.v = reflect.New(f.v.Type()).Elem()
	return zero.text()
}

// String is the value in force.
func (f *field) String() string {
	switch {
	case f.v.Kind() == reflect.Invalid: // package flag calls it on a zero field
		return ""
	case !f.given():
		return f.fallback()
	}
	return f.text()
}

func (f *field) text() string {
	if v := f.value(); v != nil {
		return v.String()
	}
	switch x := reflect.Indirect(f.v); x.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(x.Bool() != f.not)
	case reflect.Float64:
		return strconv.FormatFloat(x.Float(), 'g', -1, 64)
	default:
		return fmt.Sprint(x)
	}
}

// IsBoolFlag reports whether the option can be given without a value.
func (f *field) IsBoolFlag() bool {
	if b, ok := f.value().(interface{ IsBoolFlag() bool }); ok {
		return b.IsBoolFlag()
	}
	return f.kind() == reflect.Bool && f.value() == nil
}

// Set parses text. The zero value is an error if the default is another value.
func (f *field) Set(text string) error {
	if err := f.parse(text); err != nil {
		return err
	}
	// The zero value stands for the default: set to zero, the option would silently be the default. Options for which
	// zero has a meaning are pointers.
	if !f.given() && f.def != "" && text != f.def && text != "" {
		return fmt.Errorf("%q is not supported; omit the option for the default, %s", text, f.def)
	}
	return nil
}

func (f *field) parse(text string) error {
	if f.v.Kind() == reflect.Pointer && f.v.IsNil() {
		p := reflect.New(f.v.Type().Elem())
		to := *f
		to.v = p.Elem()
		if err := to.parse(text); err != nil {
			return err
		}
		f.v.Set(p)
		return nil
	}
	if v := f.value(); v != nil {
		return v.Set(text)
	}
	return f.parseBasic(reflect.Indirect(f.v), text)
}

func (f *field) parseBasic(x reflect.Value, text string) error {
	switch x.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		x.SetBool(b != f.not)
		return numeric(err)
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(text, 0, x.Type().Bits())
		x.SetInt(i)
		return numeric(err)
	case reflect.Uint64:
		u, err := strconv.ParseUint(text, 0, 64)
		x.SetUint(u)
		return numeric(err)
	case reflect.Float64:
		d, err := strconv.ParseFloat(text, 64)
		x.SetFloat(d)
		return numeric(err)
	}
	if f.enum != nil && !slices.Contains(f.enum, text) {
		return f.unknown(text)
	}
	x.SetString(text)
	return nil
}

// numeric is an error of package strconv without its function and text, which the caller names.
func numeric(err error) error {
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("value out of range")
	case err != nil:
		return errors.New("parse error")
	}
	return nil
}

func (f *field) unknown(text string) error {
	return fmt.Errorf("%q is not one of %s", text, strings.Join(f.enum, ", "))
}
