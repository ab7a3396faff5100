package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// A distilling is a section on distillation as in section 3 of Hinton, Vinyals, Dean: Distilling the Knowledge in a
// Neural Network, 2015, arXiv:1503.02531: the teacher is regularized by dropout, bounded weights and shifted images,
// the student by nothing but its teacher. Trainings that ended are not repeated by the next run: their errors are in
// NAME.txt in the bench's folder for training.
type distilling struct {
	*bench
	*results
	data split

	name, title string
	teachers    int // teachers with a seed of their own; students of further seeds have the first one
	student     []string
	// options of all trainings; of further training of the teacher without dropout, nil for none
	every, further []string
	temperatures   []string       // one is chosen
	paper          map[string]int // errors of the paper on all 10,000 test images; nil for other networks
}

var (
	teacherUnits = []string{"784", "1200", "1200", "10"}

	whole   = []string{"--validate", "0"}
	strict  = []string{"--dropout", "0.3", "--max-norm", "3", "--augment", "shift=2"}
	mimicry = []string{"--alpha", "0", "--cache-teacher"}
	seeds   = []int{1, 2, 3}
)

// distill is distillation to a student of a quarter of the units.
func (b *bench) distill(ctx context.Context) (string, error) {
	d := &distilling{
		bench: b, name: "distill", title: "Distillation, MNIST", teachers: 1,
		student:      []string{"784", "300", "300", "10"},
		every:        []string{"--epochs", "40", "--batch", "128", "--lr", "1e-3"},
		temperatures: []string{"2", "4", "8", "20"},
	}
	return d.run(ctx)
}

// hinton is distillation with the networks of the paper.
func (b *bench) hinton(ctx context.Context) (string, error) {
	d := &distilling{
		bench: b, name: "hinton", title: "Distillation, networks of Hinton et al.", teachers: len(seeds),
		student:      []string{"784", "800", "800", "10"},
		every:        []string{"--epochs", "10", "--batch", "128", "--lr", "1e-3"},
		further:      []string{"--epochs", "8", "--batch", "128", "--lr", "5e-4", "--augment", "shift=2"},
		temperatures: []string{"4", "8", "20"}, paper: map[string]int{"teacher": 67, "alone": 146, "distilled": 74},
	}
	return d.run(ctx)
}

// run trains teachers, a student alone for each seed, and one that learns from a teacher.
func (d *distilling) run(ctx context.Context) (_ string, err error) {
	if d.results, err = openResults(d.file("txt")); err != nil {
		return "", err
	}
	d.data = d.mnist(byte255)
	errs := map[string][]int{}
	run := func(name string, n int, train func(seed int, out string) error) error {
		for _, seed := range seeds[:d.some(n)] {
			n, err := d.trained(ctx, name, seed, train)
			if err != nil {
				return err
			}
			errs[name] = append(errs[name], n)
		}
		return nil
	}
	if err := run("teacher", d.teachers, func(seed int,
		out string) error {
		return d.teacher(ctx, seed, out)
	}); err != nil {
		return "", err
	}
	temperature, tried, err := d.temperature(ctx)
	if err != nil {
		return "", err
	}
	alone := func(seed int, out string) error {
		_, err := d.train(ctx, "finetune", out, seed, whole)
		return err
	}
	taught := func(seed int, out string) error {
		_, err := d.train(ctx, "distill", out, seed, slices.Concat(d.lesson(seed, temperature), whole))
		return err
	}
	if err := errors.Join(run("alone", len(seeds), alone), run("distilled", len(seeds), taught)); err != nil {
		return "", err
	}
	return d.page(errs, temperature, tried), nil
}

// file is a path in the bench's folder for training.
func (d *distilling) file(suffix string) string { return d.trainFile(d.name + "." + suffix) }

// page is the section of the document.
func (d *distilling) page(errs map[string][]int, temperature, tried string) string {
	var t strings.Builder
	fmt.Fprintf(&t, "## %s\n\nTrained on the 60,000 images, evaluated on %d test images. All: `%s %s`. The teacher:\n`%s`", d.title, tested, strings.Join(d.every, " "), strings.Join(whole, " "), strings.Join(strict, " "))
	if d.further != nil {
		fmt.Fprintf(&t, ", then `%s`", strings.Join(d.further, " "))
	}
	fmt.Fprintf(&t, "; distilled students: `%s --temperature %s`, without labels.\nThe temperature was chosen on 6,000 of the 60,000 images, held out from training: top-1 accuracy of %s.\n\n", strings.Join(mimicry, " "), temperature, tried)
	t.WriteString("| net | errors by seed | mean | accuracy, % |\n|---|---:|---:|---:|\n")
	student := "student " + strings.Join(d.student, "-")
	for _, row := range []struct{ name, run string }{
		{"teacher " + strings.Join(teacherUnits, "-"), "teacher"}, {student + ", no teacher", "alone"},
		{student + ", distilled", "distilled"},
	} {
		x := errs[row.run]
		fmt.Fprintf(&t, "| %s | %s | %.1f | %s |\n", row.name, strings.Trim(fmt.Sprint(x), "[]"), mean(x),
			percent(1-mean(x)/tested))
	}
	gap := mean(errs["alone"]) - mean(errs["teacher"])
	fmt.Fprintf(&t, "\nThe gap between the student without a teacher and the teacher is %.1f errors; distillation closes %.0f %% of it.\n", gap, 100*(mean(errs["alone"])-mean(errs["distilled"]))/gap)
	if d.paper != nil {
		fmt.Fprintf(&t, "The paper reports %d, %d and %d errors on 10,000 test images, with its temperature of 20.\n",
			d.paper["teacher"], d.paper["alone"], d.paper["distilled"])
	}
	return t.String()
}

func mean(x []int) float64 {
	sum := 0
	for _, n := range x {
		sum += n
	}
	return float64(sum) / float64(len(x))
}

// trained returns the errors of a network on the test images after training with a seed.
func (d *distilling) trained(ctx context.Context, name string, seed int, train func(seed int, out string) error) (int,
	error) {
	n, err := d.once(fmt.Sprintf("%s %d", name, seed), func() (float64, error) {
		out := d.file(name + ".onnx")
		if name == "teacher" {
			out = d.teacherFile(seed)
		}
		if err := train(seed, out); err != nil {
			return 0, err
		}
		n, err := d.errorsOf(ctx, out, d.data)
		return float64(n), err
	})
	return int(n), err
}

func (d *distilling) teacherFile(seed int) string {
	return d.file(fmt.Sprintf("teacher.%d.onnx", min(seed, d.teachers)))
}

// teacher trains the teacher of a seed.
func (d *distilling) teacher(ctx context.Context, seed int, out string) error {
	in, err := d.net(ctx, teacherUnits)
	if err != nil {
		return err
	}
	first := out
	if d.further != nil {
		first = d.file("dropout.onnx")
	}
	if _, err = d.learn(ctx, d.data.train, slices.Concat([]string{"finetune", in, "-o", first}, d.every, whole,
		strict, seeded(seed))...); err != nil || d.further == nil {
		return err
	}
	_, err = d.learn(ctx, d.data.train, slices.Concat([]string{"finetune", first, "-o", out,
		"--seed", strconv.Itoa(seed)}, whole, d.further)...)
	return err
}

// lesson are the options of learning from the teacher of a seed.
func (d *distilling) lesson(seed int, temperature string) []string {
	return slices.Concat([]string{"--teacher", d.teacherFile(seed), "--temperature", temperature}, mimicry)
}

func seeded(seed int) []string {
	return []string{"--reinit", strconv.Itoa(seed), "--seed", strconv.Itoa(seed)}
}

// some is n, or 1 with -quick.
func (b *bench) some(n int) int {
	if b.quick {
		return 1
	}
	return n
}

// train trains a student.
func (d *distilling) train(ctx context.Context, verb, out string, seed int, options []string) (pass.Training, error) {
	in, err := d.net(ctx, d.student)
	if err != nil {
		return pass.Training{}, err
	}
	args := []string{verb, in, "-o", out}
	if verb == "distill" {
		args = []string{verb, "--student", in, "-o", out}
	}
	return d.learn(ctx, d.data.train, slices.Concat(args, d.every, options, seeded(seed))...)
}

// temperature is the best of temperatures, evaluated on a tenth of the training data with the first seed.
func (d *distilling) temperature(ctx context.Context) (best, tried string, err error) {
	most := -1.0
	var words []string
	for _, temperature := range d.temperatures[:d.some(len(d.temperatures))] {
		fraction, err := d.once("temperature "+temperature,
			func() (float64, error) { return d.heldOut(ctx, temperature) })
		if err != nil {
			return "", "", err
		}
		words = append(words, fmt.Sprintf("%s %% at %s", percent(fraction), temperature))
		if fraction > most {
			best, most = temperature, fraction
		}
	}
	return best, strings.Join(words, ", "), nil
}

// heldOut is the accuracy on a tenth of the images, of a student trained on the others.
func (d *distilling) heldOut(ctx context.Context, temperature string) (float64, error) {
	result, err := d.train(ctx, "distill", d.file("tried.onnx"), seeds[0],
		append(d.lesson(seeds[0], temperature), "--validate", "0.1"))
	if err != nil || len(result.ValidationAccuracy) == 0 {
		return 0, errors.Join(err, errors.New("no samples were held out"))
	}
	return result.ValidationAccuracy[len(result.ValidationAccuracy)-1].Y, nil
}
