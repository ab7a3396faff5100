package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/internal/fleet"
	"github.com/mcompress/mcompress/internal/manifest"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

func planCommand(t *tool) *cli.Command {
	var workers int
	var folder string
	m := newManifestFlags()
	return &cli.Command{
		Name:      "plan",
		Usage:     "divide the compression of one model between several processes",
		ArgsUsage: "MODEL RECIPE | -- COMMAND [FLAGS] MODEL",
		Description: `The plan is a file in the folder of --output, in which the result will be. Then each worker computes its part, in any order and on any machine
that has the folder, the model and the files that options name under the same paths or URLs; and one process finalizes the result:

  mcompress plan -n 16 -o compressed model.onnx recipe.yaml
  mcompress work compressed --index 0        (to 15)
  mcompress finalize compressed

With --emit the plan's manifest of Kubernetes Jobs, or script for Slurm, is printed:

  mcompress plan -n 16 -o /data/out --emit kubernetes --volume models:/data /data/model.onnx /data/recipe.yaml | kubectl apply -f -
  mcompress plan -n 16 -o out --emit slurm model.onnx recipe.yaml | sh

The result has a data file of each worker, and the bytes that one process writes with --data-files 16. Besides payloads, the workers divide the measurements
of --sensitivity, --auto, --allocate sensitivity and --compare auto. The layers of GPTQ, wanda and sparsegpt depend on those before them and are computed by the first
worker, while the others wait for it, unless --sequential=false.

A plan with --evaluator or --ort-lib runs that program or library in its processes, which require --allow-programs for it.

Instead of a recipe, a command with its flags but --output: mcompress plan -n 16 -o compressed -- quantize --auto --min-sqnr 30 --data samples.npz model.onnx`,
		Flags: group("flags", func(fs *flag.FlagSet) {
			fs.IntVar(&workers, "number", 0, "`number` of workers")
			fs.Var(resultPath{outPath{&folder}}, "output", "`folder` for the plan and the result, new or without a plan; s3://BUCKET/PREFIX for workers without a shared file system")
			m.flags(fs)
		}),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 2, math.MaxInt)
			if err != nil {
				return err
			}
			if workers < 1 || folder == "" {
				return usagef("--number and --output are required")
			}
			if err := pass.CheckDataFiles(workers); err != nil {
				return usagef("--number: %w", err)
			}
			if err := m.check(t, folder); err != nil {
				return err
			}
			return t.plan(c, folder, workers, args, m)
		},
	}
}

// plannedCommands are those that a plan may have.
var plannedCommands = []string{"quantize", "prune", "sparse", "apply"}

// plan writes the plan of a command into a folder.
func (t *tool) plan(c *cli.Context, folder string, workers int, args []string, m *manifestFlags) (err error) {
	if !slices.Contains(plannedCommands, args[0]) {
		if len(args) != 2 {
			return usagef("MODEL RECIPE, or one of the commands %s expected", strings.Join(plannedCommands, ", "))
		}
		args = []string{"apply", args[1], args[0]}
	}
	if i := slices.IndexFunc(args, func(arg string) bool { return mcli.Shown(arg) != arg }); i >= 0 {
		return usagef("%s: a plan stores no URLs with a query, which may have a signature", mcli.Shown(args[i]))
	}
	asked, err := t.parse(c, args)
	if err != nil {
		return err
	}
	planning := asked.Request.Plan
	if asked.Sensitivities {
		planning = asked.Request.PlanSensitivities
	}
	p, err := planning(c.Context, folder, workers)
	if err != nil {
		return err
	}
	p.Command = args
	// Before the plan is written: what the manifest refuses leaves no plan in the folder.
	run, err := m.run(c, t, p, args[1:])
	if err != nil {
		return err
	}
	if err := p.Write(c.Context); err != nil {
		return err
	}
	if t.json {
		return t.encode(p)
	}
	summary := io.Writer(t.stdout)
	if run != nil {
		// Standard output is the manifest, which is piped into kubectl or sh.
		if summary = t.stderr; t.quiet {
			summary = io.Discard
		}
		if err := manifest.Write(t.stdout, m.emit.Value, *run); err != nil {
			return err
		}
	}
	return mcli.Planned(summary, folder, workers, p.Read, p.Memory, p.Files)
}

// parse is the request of a command line, which is not run.
func (t *tool) parse(c *cli.Context, args []string) (*mcompress.Plan, error) {
	global := append([]string{"mcompress"}, t.given(t.workers)...)
	if t.quiet {
		global = append(global, "--quiet")
	}
	// Flags are fields of a tool: those of the planned command must not be those of plan itself.
	sub := newTool(t.stdout.Unwrap(), t.stderr.Unwrap())
	sub.ended = t.ended
	sub.planned = &mcompress.Plan{}
	if err := sub.appFor(args).RunContext(c.Context, append(global, args...)); err != nil {
		return nil, err
	}
	if len(sub.planned.Request.Models) == 0 {
		return nil, usagef("%s asks for nothing that a plan divides", strings.Join(args, " "))
	}
	return sub.planned, nil
}

func workCommand(t *tool) *cli.Command {
	index, patience, programs := -1, time.Hour, false
	return &cli.Command{
		Name:      "work",
		Usage:     "compute a part of a plan",
		ArgsUsage: "FOLDER",
		Description: `Computes the part of one worker of the plan in FOLDER. A worker that was interrupted continues with the same command, and one that has ended has nothing to
do. A worker that needs results of others, such as the sensitivities that a search begins with, waits for them.`,
		Flags: group("flags", func(fs *flag.FlagSet) {
			fs.IntVar(&index, "index", -1, "`index` of the worker, from 0 (default: that of the array job of Kubernetes, Slurm and others, as for --shard)")
			fs.DurationVar(&patience, "wait", time.Hour, "`duration` without a new result of another worker after which waiting for it ends, with exit code 1")
			allowProgramsVar(fs, &programs)
		}),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			p, err := mcompress.OpenPlan(c.Context, args[0])
			if err != nil {
				return err
			}
			p.AllowPrograms = programs
			if index < 0 {
				if index, err = workerIndex(p); err != nil {
					return err
				}
			}
			return t.work(c, p, index, patience)
		},
	}
}

// allowProgramsVar is the flag of the processes of a plan that are to run its programs.
func allowProgramsVar(fs *flag.FlagSet, allowed *bool) {
	fs.BoolVar(allowed, "allow-programs", false, "run the program of --evaluator and load the library of --ort-lib of the plan, which are code of whoever could write it")
}

// workerIndex is the index of the scheduler that runs this process.
func workerIndex(p *mcompress.Plan) (int, error) {
	shard, err := fleet.FromEnvironment(func(name string) string {
		if v := os.Getenv(name); v != "" || name != fleet.KubernetesCount {
			return v
		}
		return strconv.Itoa(p.Workers) // Kubernetes sets the index only
	})
	switch {
	case err != nil:
		return 0, &usageError{err}
	case shard.From == "":
		return 0, usagef("--index is required outside of an array job")
	case shard.Count != p.Workers:
		return 0, usagef("%s: %d tasks, the plan has %d workers", shard.From, shard.Count, p.Workers)
	}
	return shard.Index, nil
}

// work computes the part of one worker.
func (t *tool) work(c *cli.Context, p *mcompress.Plan, index int, patience time.Duration) error {
	e := t.events(c.Command.Name)
	if t.json {
		e.Note = nil
	}
	files, err := p.Work(c.Context, index, patience, t.requestLimits(), e)
	if err != nil {
		return err
	}
	if t.json {
		// No files are an empty list, and not null.
		return t.encode(map[string]any{"worker": index, "workers": p.Workers, "files": append([]report.File{}, files...)})
	}
	return mcli.Worked(t.stdout, index, p.Workers, files)
}

func finalizeCommand(t *tool) *cli.Command {
	var patience time.Duration
	programs := false
	return &cli.Command{
		Name:      "finalize",
		Usage:     "complete the result of a plan, when its workers have ended",
		ArgsUsage: "FOLDER",
		Description: `Writes the model next to the data files of the workers, verifies it, evaluates the gates, and writes the report, as the command of the plan does alone. What workers have
lost is computed anew. The parts of the workers are removed in the end; the plan stays.`,
		Flags: group("flags", func(fs *flag.FlagSet) {
			fs.DurationVar(&patience, "wait", 0, "`duration` without a new result of a worker after which waiting for them ends, with exit code 1")
			allowProgramsVar(fs, &programs)
		}),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			return t.finalize(c, args[0], patience, programs)
		},
	}
}

// finalize completes the result of the plan in a folder.
func (t *tool) finalize(c *cli.Context, folder string, patience time.Duration, programs bool) error {
	p, err := mcompress.OpenPlan(c.Context, folder)
	if err != nil {
		return err
	}
	p.AllowPrograms = programs
	f, err := p.Finalize(c.Context, patience, t.requestLimits(), t.events(c.Command.Name))
	switch {
	case err != nil && f.Outcomes == nil && f.Sensitivities == nil:
		return err
	case f.UpToDate && t.json:
		return t.encode(map[string]any{"result": "up-to-date"})
	case f.UpToDate:
		_, err := fmt.Fprintf(t.stdout, "%s: the result is complete\n", folder)
		return err
	case p.Sensitivities:
		printer := &sensitivityPrinter{tool: t, command: c.Command.Name}
		for _, s := range f.Sensitivities {
			err = errors.Join(err, printer.print(s))
		}
		return err
	}
	printer := &outcomePrinter{tool: t, command: c.Command.Name, request: p.Request}
	return printer.end(f.Outcomes, err)
}
