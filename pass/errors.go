package pass

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// An OptionError is an invalid option, or a combination of options that exclude each other: a mistake of the caller,
// which no other model and no second attempt repairs. Err names options as flags, such as --block: Error has their names
// alone, as recipes have them, and Flags is for the command line.
type OptionError struct{ Err error }

// optionName matches the flag of an option in a text.
var optionName = regexp.MustCompile(`(^|[^\w-])--([a-z][a-z0-9-]*)`)

// Error is the error with the names of options as recipes have them.
func (e *OptionError) Error() string { return optionName.ReplaceAllString(e.Flags(), "$1$2") }

// Flags is the error with the flags of the options.
func (e *OptionError) Flags() string {
	text := e.Err.Error()
	var inner *OptionError
	if errors.As(e.Err, &inner) {
		text = strings.Replace(text, inner.Error(), inner.Flags(), 1)
	}
	return text
}

// Unwrap returns the cause.
func (e *OptionError) Unwrap() error { return e.Err }

// OptionErrorf formats an *OptionError, as fmt.Errorf does.
func OptionErrorf(format string, args ...any) error {
	return &OptionError{fmt.Errorf(format, args...)}
}

// An Unfit error reports that a method does not support a weight's values. The pipeline runs again with Precheck, and
// the weight is skipped. One that a step returns all the same excludes the weight from all steps, so that no weight
// ends a run.
type Unfit struct {
	Tensor string
	Reason Reason
}

func (u *Unfit) Error() string {
	return fmt.Sprintf("tensor %q: %s: %s", u.Tensor, u.Reason.Code, u.Reason.Detail)
}
