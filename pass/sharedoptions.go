package pass

import (
	"fmt"
	"reflect"
)

// SharedOptions is the type of a blank field of an option struct that has the options of a group T: a field without
// tags is the option that the field of T of the same name defines. The fields are not embedded, as a composite literal
// cannot name promoted ones:
//
//	type group struct {
//		Block int `flag:"block" usage:"elements that share a scale"`
//	}
//
//	type Method struct {
//		_ pass.SharedOptions[group]
//		// Block is the number of elements that share a scale.
//		Block int
//	}
type SharedOptions[T any] struct{}

// A sharing is any SharedOptions[T].
type sharing interface{ group() reflect.Type }

func (SharedOptions[T]) group() reflect.Type { return reflect.TypeFor[T]() }

// sharedTags are the tags of the groups that an option struct shares, by the names of fields. It panics on a field of a
// group that the struct does not have, which is a bug.
func sharedTags(options reflect.Type) map[string]reflect.StructTag {
	var tags map[string]reflect.StructTag
	for i := range options.NumField() {
		// The field is blank and cannot be read; its type has all that is needed.
		s, ok := reflect.Zero(options.Field(i).Type).Interface().(sharing)
		if !ok {
			continue
		}
		if tags == nil {
			tags = map[string]reflect.StructTag{}
		}
		for _, f := range reflect.VisibleFields(s.group()) {
			if own, has := options.FieldByName(f.Name); !has || own.Type != f.Type {
				panic(fmt.Sprintf("%s shares %s and has no field %s %s", options, s.group(), f.Name, f.Type))
			}
			tags[f.Name] = f.Tag
		}
	}
	return tags
}

// SharedOf returns the options of a group that an option struct shares.
func SharedOf[T any](o Options) (group T) {
	from, to := reflect.Indirect(reflect.ValueOf(o)), reflect.ValueOf(&group).Elem()
	for i := range to.NumField() {
		to.Field(i).Set(from.FieldByName(to.Type().Field(i).Name))
	}
	return group
}
