package main

import (
	"flag"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/registry"
)

// destinations is the part of help about references.
const destinations = `  oci://HOST/REPOSITORY:TAG   OCI registry: a model artifact (CNCF ModelPack) with the report as a referrer
  mlflow://HOST/NAME[@ALIAS]  MLflow 3: a run, a logged model with the reports, and a version of the registered model
  hf:DIR                      folder for "hf upload": model card, configuration, and the model with its reports in DIR/onnx
  dir:DIR                     folder`

func pushCommand(t *tool) *cli.Command {
	r := &registryFlags{}
	var reportDir string
	var model cardFlags
	var mounts []string
	return &cli.Command{
		Name:      "push",
		Usage:     "upload a model with its external data and reports to a registry",
		ArgsUsage: "DEST MODEL",
		Description: `DEST is one of:
` + destinations + `

The files of MODEL are pushed with the files next to it that belong to it: configuration and tokenizer if the folder has
config.json or genai_config.json, NAME.report.json, NAME.report.md, NAME.cdx.json (ML-BOM), NAME.intoto.json (provenance), NAME.sig
(signature) and NAME.card.md.
Files that the registry has are not uploaded again, and the tag is moved last: an interrupted push is repeated with the same
command. Credentials are those of Docker (docker login), and of the environment for MLflow: MLFLOW_TRACKING_TOKEN, or
MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD. The host of MLflow may have a path, such as mlflow://HOST/PATH/NAME.

Example: mcompress push oci://registry.example.com/models/mlp:1.0 mlp.dynamic-int8.onnx`,
		Flags: slices.Concat(group("flags", func(fs *flag.FlagSet) {
			fs.StringVar(&reportDir, "report-dir", "", "`folder` of the reports (default: that of the model)")
			model.flags(fs)
			fs.Func("mount-from", "`repository` of the same OCI registry, such as that of the float model, whose files are not uploaded again; may be repeated", func(name string) error {
				mounts = append(mounts, name)
				return nil
			})
		}), group("registry", func(fs *flag.FlagSet) { r.declare(fs, overwritesTag) })),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 2, 2)
			if err != nil {
				return err
			}
			ref, err := parseReference(args[0])
			if err != nil {
				return err
			}
			card, err := model.card()
			if err != nil {
				return err
			}
			t.printWarning(c.Command.Name, model.reports().Lacking(ref))
			o, stop := r.options(t, c.Command.Name, ref)
			o.MountFrom, o.Card = mounts, card
			pushed, err := mcompress.PushModel(c.Context, ref, args[1], reportDir, o, t.events(c.Command.Name))
			stop()
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(pushed.Files, func(f registry.File) bool { return f.Role == registry.ReportJSON }) {
				printError(t.stderr, fmt.Errorf("%s: warning: %s has no report (NAME.report.json): only the model is pushed", c.Command.Name, args[1]))
			}
			if t.json {
				return t.encode(mcli.PushedFacts(pushed))
			}
			return mcli.Pushed(t.stdout, t.style(), args[1], pushed)
		},
	}
}
