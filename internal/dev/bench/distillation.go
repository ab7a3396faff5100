package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// Distillation as in section 3 of Hinton, Vinyals, Dean: Distilling the Knowledge in a Neural Network, 2015, arXiv:1503.02531, with its
// networks: the teacher is regularized by dropout, bounded weights and shifted images, and then trained further without dropout; the student is
// regularized by nothing but its teacher. Trainings that ended are not repeated by the next run: their errors are in distill.txt in the bench's folder for training.
var (
	teacherUnits, studentUnits = []string{"784", "1200", "1200", "10"}, []string{"784", "800", "800", "10"}

	every   = []string{"--epochs", "10", "--batch", "128", "--lr", "1e-3"}
	whole   = []string{"--validate", "0"}
	strict  = []string{"--dropout", "0.3", "--max-norm", "3", "--augment", "shift=2"}
	further = []string{"--epochs", "8", "--batch", "128", "--lr", "5e-4", "--augment", "shift=2"}
	mimicry = []string{"--alpha", "0", "--cache-teacher"}

	temperatures = []string{"4", "8", "20"}
	seeds        = []int{1, 2, 3}
)

// hinton are the errors of the paper on all 10,000 test images.
var hinton = map[string]int{"teacher": 67, "alone": 146, "distilled": 74}

// A distilling is the section with the results of earlier runs.
type distilling struct {
	*bench
	*results
	data split
}

// distill trains a teacher for each seed, a student alone, and one that learns from the teacher.
func (b *bench) distill(ctx context.Context) (string, error) {
	ended, err := openResults(b.trainFile("distill.txt"))
	if err != nil {
		return "", err
	}
	d := &distilling{b, ended, b.mnist(byte255)}
	errs := map[string][]int{}
	run := func(name string, train func(seed int, out string) error) error {
		for _, seed := range seeds[:b.some(len(seeds))] {
			n, err := d.trained(ctx, name, seed, train)
			if err != nil {
				return err
			}
			errs[name] = append(errs[name], n)
		}
		return nil
	}
	if err := run("teacher", func(seed int, out string) error { return d.teacher(ctx, seed, out) }); err != nil {
		return "", err
	}
	temperature, tried, err := d.temperature(ctx)
	if err != nil {
		return "", err
	}
	alone := func(seed int, out string) error {
		_, err := d.student(ctx, "finetune", out, seed, whole)
		return err
	}
	taught := func(seed int, out string) error {
		_, err := d.student(ctx, "distill", out, seed, slices.Concat(d.lesson(seed, temperature), whole))
		return err
	}
	if err := errors.Join(run("alone", alone), run("distilled", taught)); err != nil {
		return "", err
	}
	return d.page(errs, temperature, tried), nil
}

// page is the section of the document.
func (d *distilling) page(errs map[string][]int, temperature, tried string) string {
	var t strings.Builder
	fmt.Fprintf(&t, "## Distillation, MNIST\n\nNetworks and training of Hinton, Vinyals, Dean 2015, section 3, with %d seeds. Trained on the 60,000 images, evaluated on %d test\nimages; the paper evaluated on 10,000 after longer training. All: `%s %s`. The teacher:\n`%s`, then without dropout `%s`; distilled students: `%s --temperature %s`, without labels.\nThe temperature was chosen on 6,000 of the 60,000 images, held out from training the student: top-1 accuracy of %s.\n\n",
		len(errs["teacher"]), tested, strings.Join(every, " "), strings.Join(whole, " "), strings.Join(strict, " "), strings.Join(further, " "), strings.Join(mimicry, " "), temperature, tried)
	t.WriteString("| net | errors by seed | mean | accuracy, % | errors in the paper |\n|---|---:|---:|---:|---:|\n")
	student := "student " + strings.Join(studentUnits, "-")
	for _, row := range []struct{ name, run string }{
		{"teacher " + strings.Join(teacherUnits, "-"), "teacher"}, {student + ", no teacher", "alone"}, {student + ", distilled", "distilled"},
	} {
		x := errs[row.run]
		fmt.Fprintf(&t, "| %s | %s | %.1f | %s | %d of 10,000 |\n", row.name, strings.Trim(fmt.Sprint(x), "[]"), mean(x), percent(1-mean(x)/tested), hinton[row.run])
	}
	gap := mean(errs["alone"]) - mean(errs["teacher"])
	fmt.Fprintf(&t, "\nThe gap between the student without a teacher and the teacher is %.1f errors; distillation closes %.0f %% of it (paper: 79 and 91 %%).\n", gap, 100*(mean(errs["alone"])-mean(errs["distilled"]))/gap)
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
func (d *distilling) trained(ctx context.Context, name string, seed int, train func(seed int, out string) error) (int, error) {
	n, err := d.once(fmt.Sprintf("%s %d", name, seed), func() (float64, error) {
		out := d.trainFile(name + ".trained.onnx")
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
	return d.trainFile(fmt.Sprintf("teacher.%d.onnx", seed))
}

// teacher trains the teacher of a seed, first with dropout, then without.
func (d *distilling) teacher(ctx context.Context, seed int, out string) error {
	first := d.trainFile(fmt.Sprintf("teacher.%d.dropout.onnx", seed))
	if _, err := os.Stat(first); err != nil {
		in, err := d.net(ctx, teacherUnits)
		if err != nil {
			return err
		}
		if _, err = d.learn(ctx, d.data.train, slices.Concat([]string{"finetune", in, "-o", first}, every, whole, strict, seeded(seed))...); err != nil {
			return err
		}
	}
	_, err := d.learn(ctx, d.data.train, slices.Concat([]string{"finetune", first, "-o", out, "--seed", strconv.Itoa(seed)}, whole, further)...)
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

func (d *distilling) student(ctx context.Context, verb, out string, seed int, options []string) (pass.Training, error) {
	in, err := d.net(ctx, studentUnits)
	if err != nil {
		return pass.Training{}, err
	}
	args := []string{verb, in, "-o", out}
	if verb == "distill" {
		args = []string{verb, "--student", in, "-o", out}
	}
	return d.learn(ctx, d.data.train, slices.Concat(args, every, options, seeded(seed))...)
}

// temperature is the best of temperatures, evaluated on a tenth of the training data with the first seed.
func (d *distilling) temperature(ctx context.Context) (best, tried string, err error) {
	most := -1.0
	var words []string
	for _, temperature := range temperatures[:d.some(len(temperatures))] {
		fraction, err := d.once("temperature "+temperature, func() (float64, error) { return d.heldOut(ctx, temperature) })
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
	result, err := d.student(ctx, "distill", d.trainFile("student.tried.onnx"), seeds[0], append(d.lesson(seeds[0], temperature), "--validate", "0.1"))
	if err != nil || len(result.ValidationAccuracy) == 0 {
		return 0, errors.Join(err, errors.New("no samples were held out"))
	}
	return result.ValidationAccuracy[len(result.ValidationAccuracy)-1].Y, nil
}
