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

// Distillation as in section 3 of Hinton, Vinyals, Dean: Distilling the Knowledge in a Neural Network, 2015, arXiv:1503.02531:
// the teacher is held back by dropout, bounded weights and shifted images, the student by nothing but its teacher.
var (
	teacherUnits, studentUnits = []string{"784", "1200", "1200", "10"}, []string{"784", "300", "300", "10"}

	every   = []string{"--epochs", "40", "--batch", "128", "--lr", "1e-3"}
	whole   = []string{"--validate", "0"}
	strict  = []string{"--dropout", "0.3", "--max-norm", "3", "--augment", "shift=2"}
	mimicry = []string{"--alpha", "0", "--cache-teacher"}

	temperatures = []string{"2", "4", "8", "20"}
	seeds        = []int{1, 2, 3}
)

// distill trains a teacher, students alone, and students that learn from the teacher.
func (b *bench) distill(ctx context.Context) (string, error) {
	c := b.mnist(byte255)
	teacher, err := b.taughtTeacher(ctx, c)
	if err != nil {
		return "", err
	}
	temperature, tried, err := b.temperature(ctx, c, teacher)
	if err != nil {
		return "", err
	}
	wrong, err := b.errorsOf(ctx, teacher, c)
	if err != nil {
		return "", err
	}
	alone, err := b.students(ctx, c, "finetune", nil)
	if err != nil {
		return "", err
	}
	taught, err := b.students(ctx, c, "distill", slices.Concat([]string{"--teacher", teacher, "--temperature", temperature}, mimicry))
	if err != nil {
		return "", err
	}
	intro := fmt.Sprintf("## Distillation, MNIST\n\nTrained on the 60,000 images, evaluated on %d test images. All: `%s %s`. The teacher:\n`%s`; distilled students: `%s --temperature %s`, without labels.\n",
		tested, strings.Join(every, " "), strings.Join(whole, " "), strings.Join(strict, " "), strings.Join(mimicry, " "), temperature)
	intro += fmt.Sprintf("The temperature was chosen on 6,000 of the 60,000 images, held out from training: top-1 accuracy of %s.\n\n", tried)
	return intro + distilled(wrong, alone, taught), nil
}

// distilled is the table of errors.
func distilled(teacher int, alone, taught []int) string {
	var t strings.Builder
	t.WriteString("| net | errors by seed | mean | accuracy, % |\n|---|---:|---:|---:|\n")
	student := "student " + strings.Join(studentUnits, "-")
	for _, row := range []struct {
		name   string
		errors []int
	}{{"teacher " + strings.Join(teacherUnits, "-"), []int{teacher}}, {student + ", no teacher", alone}, {student + ", distilled", taught}} {
		fmt.Fprintf(&t, "| %s | %s | %.1f | %s |\n", row.name, strings.Trim(fmt.Sprint(row.errors), "[]"), mean(row.errors), percent(1-mean(row.errors)/tested))
	}
	gap := mean(alone) - float64(teacher)
	fmt.Fprintf(&t, "\nThe gap between the student without a teacher and the teacher is %.1f errors; distillation closes %.0f %% of it.\n", gap, 100*(mean(alone)-mean(taught))/gap)
	return t.String()
}

func mean(x []int) float64 {
	sum := 0
	for _, n := range x {
		sum += n
	}
	return float64(sum) / float64(len(x))
}

// taughtTeacher is the teacher after training.
func (b *bench) taughtTeacher(ctx context.Context, c split) (string, error) {
	in, err := b.net(ctx, teacherUnits)
	if err != nil {
		return "", err
	}
	out := b.trainFile("teacher.trained.onnx")
	_, err = b.learn(ctx, c.train, slices.Concat([]string{"finetune", in, "-o", out, "--reinit", "1"}, every, whole, strict)...)
	return out, err
}

// students are the errors of students, by seed.
func (b *bench) students(ctx context.Context, c split, verb string, options []string) ([]int, error) {
	var wrong []int
	for _, seed := range seeds[:b.some(len(seeds))] {
		out := b.trainFile("student.trained.onnx")
		if _, err := b.student(ctx, c, verb, out, seed, slices.Concat(options, whole)); err != nil {
			return nil, err
		}
		n, err := b.errorsOf(ctx, out, c)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, n)
	}
	return wrong, nil
}

// some is n, or 1 with -quick.
func (b *bench) some(n int) int {
	if b.quick {
		return 1
	}
	return n
}

func (b *bench) student(ctx context.Context, c split, verb, out string, seed int, options []string) (pass.Training, error) {
	in, err := b.net(ctx, studentUnits)
	if err != nil {
		return pass.Training{}, err
	}
	args := []string{verb, in, "-o", out}
	if verb == "distill" {
		args = []string{verb, "--student", in, "-o", out}
	}
	return b.learn(ctx, c.train, slices.Concat(args, every, options, []string{"--reinit", strconv.Itoa(seed), "--seed", strconv.Itoa(seed)})...)
}

// temperature is the best of temperatures, evaluated on a tenth of the training data.
func (b *bench) temperature(ctx context.Context, c split, teacher string) (best, tried string, err error) {
	most := -1.0
	var words []string
	for _, temperature := range temperatures[:b.some(len(temperatures))] {
		fraction, err := b.heldOut(ctx, c, teacher, temperature)
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
func (b *bench) heldOut(ctx context.Context, c split, teacher, temperature string) (float64, error) {
	options := append([]string{"--teacher", teacher, "--temperature", temperature, "--validate", "0.1"}, mimicry...)
	result, err := b.student(ctx, c, "distill", b.trainFile("student.tried.onnx"), 1, options)
	if err != nil || len(result.ValidationAccuracy) == 0 {
		return 0, errors.Join(err, errors.New("no samples were held out"))
	}
	return result.ValidationAccuracy[len(result.ValidationAccuracy)-1].Y, nil
}
