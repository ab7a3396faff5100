package job

import (
	"context"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// RecipeOf is the recipe of steps in reports.
func RecipeOf(steps ...pass.Options) (*report.Recipe, error) {
	return (&Options{Digest: true}).recipe(context.Background(), steps)
}
