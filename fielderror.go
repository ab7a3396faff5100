package mcompress

import (
	"errors"
	"fmt"
	"regexp"
)

// A FieldError is a field of a Request that is not valid, excludes another one or lacks one. The program names the
// flags of the fields instead (exit code 2).
type FieldError struct {
	text string // with the names of fields in braces
	err  error  // the cause; may be nil
}

// fieldName matches a field, or a gate as Gates.NAME, in the text of a FieldError.
var fieldName = regexp.MustCompile(`\{([A-Z][A-Za-z]*(?:\.[A-Za-z][\w-]*)*)\}`)

// fieldErrorf is a FieldError whose text names fields in braces: "{Search.MaxSize} requires …". The
// operand of %w is its cause.
func fieldErrorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &FieldError{text: err.Error(), err: errors.Unwrap(err)}
}

// Error is the error with the names of the fields in Go.
func (e *FieldError) Error() string { return e.Text(func(field string) string { return field }) }

// Unwrap returns the cause; nil for none.
func (e *FieldError) Unwrap() error { return e.err }

// Fields are the paths of the fields that the error is about, in the order in which it names them:
// "Verification.Metric". That of a gate ends in its name: "Gates.min-sqnr".
func (e *FieldError) Fields() (fields []string) {
	for _, m := range fieldName.FindAllStringSubmatch(e.text, -1) {
		fields = append(fields, m[1])
	}
	return fields
}

// Text is the error with the names that name gives to the fields.
func (e *FieldError) Text(name func(field string) string) string {
	return fieldName.ReplaceAllStringFunc(e.text, func(m string) string { return name(m[1 : len(m)-1]) })
}
