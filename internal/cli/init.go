package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/spf13/cobra"
)

func (a *app) initCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a commented belay.yaml into this directory",
		Long: `Writes a belay.yaml with all settings. Every line is commented out, so the file changes nothing until you edit it.
An existing file is not changed unless --force is given.`,
		Example: `  belay init
  belay init -C ../other-project`,
		Args: arguments(0, 0, "init takes no arguments; -C names the directory"),
		RunE: func(*cobra.Command, []string) error { return a.init(force) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return cmd
}

func (a *app) init(force bool) error {
	path := filepath.Join(a.dir, config.Name)
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(path, flags, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usage("%s exists already: --force overwrites it", path)
	}
	if assembly.ReadOnlyPlace(err) {
		return &exitError{code: exitFailed, err: fmt.Errorf("init: %w", err), hint: "choose a directory that you may write to with -C DIR. Settings for all projects belong in belay/" + config.Name + " in the user's directory of settings"}
	}
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	_, err = file.WriteString(config.Template())
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if _, err := fmt.Fprintf(a.out, "wrote %s\n", path); err != nil {
		return err
	}
	a.remarkf("next:  %s\n       %s", "belay doctor            check what is missing", `belay run "a task"      in this directory`)
	return nil
}
