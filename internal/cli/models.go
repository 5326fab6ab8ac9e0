package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/visible"
	"github.com/spf13/cobra"
)

// mostOffered is how many models of each provider are listed, unless one provider is named.
const mostOffered = 20

func (a *app) modelsCommand() *cobra.Command {
	var asJSON, check bool
	timeout := 5 * time.Second
	cmd := &cobra.Command{
		Use:   "models [PROVIDER]",
		Short: "List providers of models: key, address, models, window and price",
		Long: `Lists the built-in and the configured providers, and whether there is a key for each. For each provider that can be used, lists
its models with window and price. This sends nothing to the providers.

With --check, Belay asks each provider for its models. This shows whether the provider answers and accepts the key, and costs
nothing. The exit code is then 1 if a configured or named provider cannot be used.`,
		Example: `  belay models
  # do they answer, do they accept the key, which models do they have
  belay models --check
  belay models ollama --check
  # for programs
  belay models --json | jq -r '.providers[].models[]?.name'`,
		Args: arguments(0, 1, "name one provider, or none for all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			o, err := inspect.ListModels(settings, args)
			if err != nil {
				return usage("%w", err)
			}
			if check {
				o.Check(cmd.Context(), settings, timeout)
			}
			o.List(settings)
			show := a.showOffers
			if asJSON {
				show = func(o *inspect.Models, _, _ bool) error { return a.printJSON(o) }
			}
			if err := show(o, check, len(args) > 0); err != nil {
				return err
			}
			if check && slices.ContainsFunc(o.Providers, func(p inspect.Provider) bool { return p.Set && p.Status != found }) {
				return &exitError{code: exitFailed}
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			settings, err := a.settings()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return settings.ProviderNames(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object")
	cmd.Flags().BoolVar(&check, "check", false, "ask each provider for its models")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long --check waits for a provider")
	return cmd
}

// showOffers prints the providers and their models as text.
func (a *app) showOffers(o *inspect.Models, checked, all bool) error {
	s := a.onOut
	dress := map[string]func(string) string{found: s.green, missing: s.yellow, broken: s.red, note: s.dim}
	var providers, models table
	models.add("MODEL", "WINDOW", "IN", "OUT", "CACHE READ", "WRITE")
	for i := range o.Providers {
		p := &o.Providers[i]
		line := p.Detail
		if p.Status == missing {
			line += ": " + p.Remedy
		}
		for i, line := range a.wrapped(line) {
			providers.add([]string{dress[p.Status](p.Status), ""}[min(i, 1)], []string{p.Name, ""}[min(i, 1)], line)
		}
		if p.Remedy != "" && p.Status != missing {
			for i, line := range a.wrapped(p.Remedy) {
				providers.add("", "", s.dim([]string{"→ ", "  "}[min(i, 1)]+line))
			}
		}
		shown := p.Models
		if !all {
			shown = shown[:min(len(shown), mostOffered)]
		}
		for _, m := range shown {
			models.add(m.Name, tokensOf(m.Window), amountOf(m.Price.In), amountOf(m.Price.Out), amountOf(m.Price.CacheRead), amountOf(m.Price.CacheWrite))
		}
		if left := len(p.Models) - len(shown); left > 0 {
			models.add(s.dim(fmt.Sprintf("… %d more: belay models %s", left, p.Name)))
		}
	}
	if err := providers.write(a.out, nil); err != nil {
		return err
	}
	if len(models.rows) > 1 {
		fmt.Fprintln(a.out)
		if err := models.write(a.out, s.dim); err != nil {
			return err
		}
		fmt.Fprintln(a.out, s.dim("window in tokens, prices in US dollars a million tokens; - means unknown"))
	}
	fmt.Fprintln(a.out)
	last := "tasks use " + s.bold(o.Model)
	if o.Problem != "" {
		last = s.red("a task cannot run") + ": " + o.Problem
	}
	if !checked {
		last += s.dim("\ncheck whether they answer: belay models --check")
	}
	_, err := fmt.Fprintln(a.out, last)
	return err
}

func tokensOf(n int) string {
	if n == 0 {
		return "-"
	}
	return visible.Grouped(n)
}

// amountOf formats a price with all its decimals, and at least two of them. It returns "-"
// for zero.
func amountOf(price float64) string {
	if price == 0 {
		return "-"
	}
	digits := strconv.FormatFloat(price, 'f', -1, 64)
	if _, cents, _ := strings.Cut(digits, "."); len(cents) < 2 {
		return strconv.FormatFloat(price, 'f', 2, 64)
	}
	return digits
}

// completeModels completes the name of a model: first its provider, then the known models
// of that provider.
func completeModels(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	settings, err := config.Load(&config.Options{Dir: cmd.Flag("dir").Value.String()})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	provider, _, named := strings.Cut(word, "/")
	var words []string
	if !named {
		for _, name := range append(settings.ProviderNames(), config.Scripted) {
			words = append(words, name+"/")
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveKeepOrder
	}
	p, err := settings.Provider(provider)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, name := range inspect.KnownModels(settings, p) {
		words = append(words, provider+"/"+name)
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
