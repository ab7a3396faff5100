package pass

import "reflect"

// Preset returns a copy of o in which options without a value of their own have those of defaults, as far as o has
// them.
func Preset(o Options, defaults []Option) (Options, error) {
	o = settable(copied(o))
	fs := flagsOf(o)
	for _, d := range defaults {
		if fs.Lookup(d.Name) == nil || given(o, d.Name) {
			continue
		}
		if err := fs.Set(d.Name, d.Value); err != nil {
			return nil, OptionErrorf("%s: --%s: %w", o.Method().Name, d.Name, err)
		}
	}
	return o, nil
}

// Group returns the options of an option group, to which group points, that have a value.
func Group(group any) []Option {
	var list []Option
	for _, f := range fieldsOf(reflect.ValueOf(group).Elem()) {
		if f.given() {
			list = append(list, f.option())
		}
	}
	return list
}

// copied is a value of o's option struct, whether o is one or points to it.
func copied(o Options) Options {
	if v := reflect.ValueOf(o); v.Kind() == reflect.Pointer {
		return v.Elem().Interface().(Options)
	}
	return o
}

// CheckStep reports a step that is nil, a nil pointer, or has invalid options.
func CheckStep(o Options) error {
	_, err := resolved(o)
	return err
}

// OutsideRecipes is the name of an option of o that has a value and is no part of recipes, such as the path of a file
// that the step writes; "" if there is none.
func OutsideRecipes(o Options) string {
	for _, v := range Values(o) {
		if v.OutsideRecipes && v.Value != "" && v.Value != "false" && v.Value != "0" {
			return v.Name
		}
	}
	return ""
}
