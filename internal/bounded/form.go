package bounded

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// A form is what encoding/json allocates for a value of a type, besides the memory of the variable itself.
type form struct {
	typ       reflect.Type // of the value, without pointers
	own       int64        // bytes of a list, or of a string besides its text
	object    int64        // bytes of an object
	perItem   int64        // bytes of each item of a list
	perMember int64        // bytes of each member of an object besides its key; 0 where keys are not kept
	scalar    int64        // bytes of a number, true, false or null
	keeps     bool         // the text of a string is copied
	raw       bool         // the whole text is copied
}

// Bytes that a value takes in addition to its type.
const (
	// growth is the factor of lists and maps: they are grown by copying, so that the memory before and after it counts.
	growth = 2
	entry  = 32 // of a map besides key and value
	table  = 56 // of a map with places for its first 8 entries, besides these
	places = 8
	boxed  = 16 // of a number, or of the header of a string or list, in an interface
	word   = 16 // of an interface
)

var (
	// skipped is the form of values that no field takes.
	skipped = &form{}
	// names is that of a text of which only the names of its objects are kept.
	names = &form{typ: reflect.TypeFor[any](), perMember: 2 * entry}
)

var (
	forms sync.Map // *form by reflect.Type
	keys  sync.Map // fields of a struct by reflect.Type
)

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// formOf is the form of what a pointer refers to.
func formOf(v any) *form {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer {
		return skipped // an error of the decoder
	}
	// A variable that has a pointer or an interface of a pointer is decoded into what it refers to.
	x := reflect.ValueOf(v).Elem()
	for x.Kind() == reflect.Interface && !x.IsNil() && x.Elem().Kind() == reflect.Pointer && !x.Elem().IsNil() {
		x = x.Elem().Elem()
	}
	if !x.IsValid() {
		return skipped
	}
	return formOfType(x.Type())
}

func formOfType(t reflect.Type) *form {
	if f, ok := forms.Load(t); ok {
		return f.(*form)
	}
	f := &form{typ: t}
	switch kind := t.Kind(); {
	// Before those that decode themselves, as they may be pointers to such types.
	case kind == reflect.Pointer:
		*f = *formOfType(t.Elem())
		size := int64(t.Elem().Size())
		f.own, f.object, f.scalar, f.keeps = f.own+size, f.object+size, f.scalar+size, true
	case reflect.PointerTo(t).Implements(unmarshaler), reflect.PointerTo(t).Implements(textUnmarshaler):
		f.raw = true
	case kind == reflect.Interface:
		f.own, f.object, f.scalar, f.keeps = 3*boxed, table+places*2*word, boxed, true
		f.perItem, f.perMember = growth*word, growth*(2*word+entry)
	case kind == reflect.Slice:
		f.keeps, f.perItem = true, growth*int64(t.Elem().Size()) // a list of bytes may be a string
	case kind == reflect.Map:
		size := int64(t.Key().Size() + t.Elem().Size())
		f.object, f.perMember = table+places*size, growth*(size+entry)
	case kind == reflect.String:
		f.keeps = true
	}
	forms.Store(t, f)
	return f
}

// item is the form of the items of a list.
func (f *form) item() *form {
	switch t := f.target(); {
	case t == nil:
		return skipped
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return formOfType(t.Elem())
	case t.Kind() == reflect.Interface:
		return f
	}
	return skipped
}

// member is the form of a member of an object.
func (f *form) member(key []byte) *form {
	switch t := f.target(); {
	case t == nil:
		return skipped
	case t.Kind() == reflect.Map:
		return formOfType(t.Elem())
	case t.Kind() == reflect.Interface:
		return f
	case t.Kind() == reflect.Struct:
		if field := fieldsOf(t).find(key); field != nil {
			return formOfType(field)
		}
	}
	return skipped
}

// target is the type; nil of one that decodes itself.
func (f *form) target() reflect.Type {
	if f.typ == nil || f.raw {
		return nil
	}
	return f.typ
}

// fields are the types of the fields of a struct by key, and by key without case.
type fields struct{ exact, folded map[string]reflect.Type }

// find compares keys as encoding/json does: without case, if there is no equal one.
func (fs fields) find(key []byte) reflect.Type {
	if t, ok := fs.exact[string(key)]; ok {
		return t
	}
	return fs.folded[fold(string(key))]
}

// fold is the text without case: letters such as ſ and s have the same upper case only.
func fold(key string) string { return strings.ToLower(strings.ToUpper(key)) }

func fieldsOf(t reflect.Type) fields {
	if fs, ok := keys.Load(t); ok {
		return fs.(fields)
	}
	fs := fields{map[string]reflect.Type{}, map[string]reflect.Type{}}
	fs.add(t, map[reflect.Type]bool{})
	keys.Store(t, fs)
	return fs
}

// add adds the fields of a struct, and those that it embeds where it has none of the name.
func (fs fields) add(t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	var embedded []reflect.Type
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case field.Tag.Get("json") == "-":
		case field.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			embedded = append(embedded, inner)
		case field.IsExported():
			name = cmp.Or(name, field.Name)
			if _, ok := fs.exact[name]; !ok {
				fs.exact[name], fs.folded[fold(name)] = field.Type, field.Type
			}
		}
	}
	for _, inner := range embedded {
		fs.add(inner, seen)
	}
}
