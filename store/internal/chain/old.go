package chain

import (
	"context"

	"github.com/belay-run/belay/audit"
)

// Counter is the name of the counter of the main chain.
const Counter = "chain"

// oldPage is how many lines an entry for old rows has.
const oldPage = 1000

// Old yields bodies of entries for the rows that are older than the chain.
func Old(ctx context.Context, from Database, add func(body string) error) error {
	var lines Lines
	count := 0
	line := func(text string) error {
		lines.add(text)
		if count++; count%oldPage != 0 {
			return nil
		}
		body := lines.Body()
		lines.Cut(0)
		return add(body)
	}
	// All rows are read before an entry is added: a connection of PostgreSQL cannot do both
	// at once.
	var all []string
	for _, t := range []*audit.Table{&audit.Runs, &audit.Approvals, &audit.Words} {
		err := from.Rows(ctx, t, func(row []string) error {
			all = append(all, t.Line(row))
			return nil
		})
		if err != nil {
			return err
		}
	}
	err := from.Grants(ctx, func(session, hash string) error {
		all = append(all, "g"+audit.Key(session)+"="+hash)
		return nil
	})
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := line(one); err != nil {
			return err
		}
	}
	if lines.Len() > 0 {
		return add(lines.Body())
	}
	return nil
}
