package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

type pathInput struct {
	Path string `json:"path" jsonschema:"the file, below the project"`
}

type writeInput struct {
	Path string `json:"path" jsonschema:"the file, below the project"`
	Text string `json:"text" jsonschema:"the content of the file"`
}

type searchInput struct {
	Text string `json:"text" jsonschema:"what to look for"`
}

var project = map[string]string{
	"CHANGELOG.md": "# 1.2\n- fixd the login\n",
	"config.env":   "release_token = key-4f1a9c\n",
}

// news is the file with the news of the release.
const news = "NEWS.md"

// fill writes the files of the project.
func fill(dir string) error {
	dir = filepath.Join(dir, "project")
	err := os.Mkdir(dir, 0o700)
	for name, text := range project {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}

const slowSearch = 60 * time.Millisecond

// tools returns tools that work only on files below root. The write tool calls cut.
func tools(root *os.Root, cut *scissors) []belay.Tool {
	read := func(_ context.Context, in pathInput) (string, error) {
		data, err := root.ReadFile(in.Path)
		return string(data), err
	}
	write := func(ctx context.Context, in writeInput) (string, error) {
		if err := root.WriteFile(in.Path, []byte(in.Text), 0o600); err != nil {
			return "", err //nolint:wrapcheck // it is for the model
		}
		return fmt.Sprintf("%d bytes written", len(in.Text)), cut.cut(ctx, in.Path)
	}
	search := func(ctx context.Context, in searchInput) (string, error) {
		if err := pause(ctx, slowSearch); err != nil {
			return "", err
		}
		return grep(root.FS(), in.Text)
	}
	return []belay.Tool{
		belay.NewTool("read", "Reads a file.", read, nil),
		belay.NewTool("write", "Writes a file.", write, &belay.ToolTraits{Serial: true}),
		belay.NewTool("search", "Finds the lines that contain a text.", search, nil),
	}
}

// grep finds the lines of all files that contain a text.
func grep(files fs.FS, text string) (string, error) {
	var found []string
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("search: %w", err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, text) {
				found = append(found, name+": "+strings.TrimSpace(line))
			}
		}
		return nil
	})
	return strings.Join(found, "\n"), err
}

// pause waits. It returns early if ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
