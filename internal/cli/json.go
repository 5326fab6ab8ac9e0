package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// printJSON writes a value as one line of JSON.
func (a *app) printJSON(value any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// printAll writes each value as one line of JSON.
func printAll[T any](a *app, values []T) error {
	for _, v := range values {
		if err := a.printJSON(v); err != nil {
			return err
		}
	}
	return nil
}

func jsonFlag(cmd *cobra.Command, into *bool, what string) {
	cmd.Flags().BoolVar(into, "json", false, what)
}
