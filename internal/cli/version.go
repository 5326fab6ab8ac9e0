package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// stamp is set by the linker in a release: the version, the commit and the time of the commit, with spaces between them.
// A release does not rely on what the go command finds out by itself, because that differs between a clone and a source
// archive.
var stamp string

type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if parts := strings.Fields(stamp); len(parts) == 3 {
		b.Version, b.Commit, b.Time = parts[0], parts[1][:min(len(parts[1]), 12)], parts[2]
		return b
	}
	b.Version = cmp.Or(info.Main.Version, "(devel)")
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value[:min(len(s.Value), 12)]
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// version returns the version of this program.
func version() string { return thisBuild().Version }

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Prints the version, the commit it was built from, the Go version and the platform.",
		Example: `  belay version
  belay version --json`,
		Args: arguments(0, 0, "version takes no arguments"),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				return a.printJSON(b)
			}
			line := "belay " + b.Version
			if b.Commit != "" {
				line += " " + b.Commit
			}
			if b.Modified {
				line += " (modified)"
			}
			_, err := fmt.Fprintf(a.out, "%s %s %s\n", line, b.Go, b.Platform)
			return err
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object")
	return cmd
}
