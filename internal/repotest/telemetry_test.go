package repotest_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Only package telemetry imports OpenTelemetry. The benchmark measures it with an exporter in
// memory, and the tests decode what was sent.
//
// SPEC O-01
func TestOnlyTelemetryImportsOpenTelemetry(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t, func(*goFile) bool { return true }) {
		dir := file.dir()
		if covers("telemetry/...", dir) || dir == benchmark {
			continue
		}
		for _, spec := range file.syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(imported, "go.opentelemetry.io/") && !(dir == "internal/otlptest" && strings.HasPrefix(imported, "go.opentelemetry.io/proto/")) {
				t.Errorf("%s: %s may not import %s: only package telemetry imports OpenTelemetry", file.at(spec.Pos()), spoken(dir), imported)
			}
		}
	}
}

// A program that embeds Belay without package telemetry links no part of OpenTelemetry, also
// not through another module. host has everything but the command line.
//
// SPEC O-01
func TestEmbeddingLinksNoOpenTelemetry(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".", "./host", "./engine", "./serve", "./client")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "go.opentelemetry.io/") {
			t.Errorf("a program that embeds Belay links %s", strings.TrimSpace(line))
		}
	}
	if !strings.Contains(string(out), modulePath+"/hook\n") {
		t.Error("the list does not have package hook")
	}
}
