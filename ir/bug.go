package ir

import (
	"fmt"
	"runtime/debug"
)

// A Bug is a failure of the program itself: a panic, or a result that contradicts what was declared. No other model is
// needed, and no second attempt helps. Its message is one line; Stack is the stack trace.
type Bug struct {
	Value any
	Stack []byte
}

func (b *Bug) Error() string {
	return fmt.Sprintf("internal error: %v; please report it with the model", b.Value)
}

// Bugf formats a *Bug, as fmt.Errorf does.
func Bugf(format string, args ...any) error {
	return &Bug{Value: fmt.Errorf(format, args...), Stack: debug.Stack()}
}

// Guard makes a panic of the function that defers it its error, a *Bug.
func Guard(err *error) {
	if v := recover(); v != nil {
		*err = &Bug{Value: v, Stack: debug.Stack()}
	}
}
