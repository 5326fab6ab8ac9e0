package repotest_test

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"
	"testing"
)

// A file has one topic and is short enough to read at once.
const (
	fileMedian = 120 // the aim: only reported
	fileP95    = 500 // at least 95 of 100 files have no more lines
	fileMost   = 800 // no file is longer
)

// layerNames are file names, without extension, that name a layer. A file should be named
// after its topic.
var layerNames = []string{"common", "helper", "helpers", "misc", "type", "types", "util", "utils"}

func TestFileSizes(t *testing.T) {
	t.Parallel()
	files := goFiles(t, handWritten)
	if len(files) == 0 {
		t.Fatal("found no code to measure")
	}
	slices.SortFunc(files, func(a, b *goFile) int { return cmp.Compare(lines(a), lines(b)) })
	for _, file := range files {
		if n := lines(file); n > fileMost {
			t.Errorf("%s has %d lines, more than %d: split it by topic", file.path, n, fileMost)
		}
	}
	if p95 := percentile(files, 95); lines(p95) >= fileP95 {
		t.Errorf("the 95th percentile of file sizes is %d lines (%s), not under %d: split the longest files by topic", lines(p95), p95.path, fileP95)
	}
	t.Logf("%d files, median %d lines (aim near %d), 95th percentile %d (under %d), longest %d (at most %d)", len(files),
		lines(percentile(files, 50)), fileMedian, lines(percentile(files, 95)), fileP95, lines(files[len(files)-1]), fileMost)
}

func TestFileNamesAreTopics(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t, func(f *goFile) bool { return !f.generated }) {
		if namesLayer(file.path) {
			t.Errorf("%s: the file is named after a layer: name it after its topic, as in order.go or deadline.go", file.path)
		}
	}
}

// lines counts the lines of a file.
func lines(file *goFile) int { return bytes.Count(file.src, []byte("\n")) }

// percentile returns the element that n of 100 elements do not exceed, by nearest rank. The
// slice must be sorted and not empty.
func percentile[E any](sorted []E, n int) E { return sorted[(len(sorted)*n+99)/100-1] }

// namesLayer reports whether a Go file or the file that it tests is named after a layer.
func namesLayer(name string) bool {
	topic := strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".go"), "_test")
	return slices.Contains(layerNames, topic)
}

func TestFileSizesRule(t *testing.T) {
	t.Parallel()
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	if got := percentile(hundred, 95); got != 95 {
		t.Errorf("95th percentile of 1 to 100 = %d, want 95", got)
	}
	if got := percentile([]int{7}, 95); got != 7 {
		t.Errorf("95th percentile of one element = %d, want that element", got)
	}
	for name, want := range map[string]bool{"hook/types.go": true, "utils_test.go": true, "hook/order.go": false, "hook/subtypes.go": false} {
		if got := namesLayer(name); got != want {
			t.Errorf("namesLayer(%q) = %t, want %t", name, got, want)
		}
	}
}
