package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/google/uuid"
)

// docs:begin tools

// Reason is an enum. The model may use no other value.
type Reason string

// JSONSchema adds to the schema that is made from the Go type.
func (Reason) JSONSchema() map[string]any {
	return map[string]any{"enum": []string{"broken", "late", "unwanted"}}
}

// Amount is a nested input.
type Amount struct {
	Cents    int    `json:"cents" minimum:"1" maximum:"100000"`
	Currency string `json:"currency,omitempty" enum:"EUR,USD" default:"EUR"`
}

// Refund is the input of the tool refund.
type Refund struct {
	Order  uuid.UUID `json:"order"`
	Amount Amount    `json:"amount"`
	Reason Reason    `json:"reason"`
	Note   *string   `json:"note" maxLength:"500" jsonschema:"for the accounts department; leave it out if there is nothing to say"`
}

// PhoneCall is the input of the tool call_back.
type PhoneCall struct {
	At   time.Time     `json:"at"`
	Long time.Duration `json:"long,omitempty" default:"15m" jsonschema:"how long the call will take, such as 30m"`
}

// Order is what the tool find_order returns.
type Order struct {
	ID      uuid.UUID `json:"id"`
	Item    string    `json:"item"`
	Price   Amount    `json:"price"`
	Shipped time.Time `json:"shipped"`
}

// shop has the orders, and a file with one line for each payment.
type shop struct {
	orders map[uuid.UUID]Order
	ledger string
	mu     sync.Mutex
}

func (s *shop) tools() []belay.Tool {
	return []belay.Tool{
		belay.NewTool("find_order", "Finds an order by its number.", s.find, nil),
		belay.NewTool("call_back", "Arranges that a colleague calls the customer.", s.callBack, nil),
		// A refund that was interrupted by a crash runs again. Its key makes sure that it is paid once.
		belay.NewTool("refund", "Pays money back.", s.refund, &belay.ToolTraits{Idempotent: true, Serial: true}),
	}
}

// bigRefund asks a person about refunds of more than 20 euros.
var bigRefund = belay.ToolPre.On("big-refund", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	var in Refund
	if err := call.Decode(&in); err != nil {
		return belay.Pass, err // tool.pre is a gate: an error denies
	}
	if in.Amount.Cents > 2000 {
		return belay.Ask(fmt.Sprintf("Refund %.2f %s, because it is %s?", float64(in.Amount.Cents)/100, in.Amount.Currency, in.Reason)), nil
	}
	return belay.Pass, nil
}, &hook.Options{Match: hook.Match{Tools: []string{"refund"}}})

// docs:end tools

// payment is a line of the ledger.
type payment struct {
	Key string `json:"key"`
	Refund
}

func (s *shop) find(_ context.Context, in struct {
	Order uuid.UUID `json:"order"`
},
) (Order, error) {
	order, ok := s.orders[in.Order]
	if !ok {
		return Order{}, fmt.Errorf("there is no order %s: ask the customer for its number", in.Order)
	}
	return order, nil
}

func (*shop) callBack(_ context.Context, in PhoneCall) (string, error) {
	return fmt.Sprintf("a colleague will call at %s, for %s", in.At.Format(time.RFC1123), in.Long), nil
}

// refund writes the payment, if the ledger does not have its key yet. A real payment
// service uses the key in the same way.
func (s *shop) refund(ctx context.Context, in Refund) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	file, err := os.OpenFile(s.ledger, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return "", fmt.Errorf("open the ledger: %w", err)
	}
	defer func() { _ = file.Close() }() // ignore the error: Sync has already reported whether the data is stored
	key, order := belay.CallOf(ctx).Key(), s.orders[in.Order]
	left := order.Price.Cents
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var paid payment
		if json.Unmarshal(lines.Bytes(), &paid) != nil {
			return "", errors.New("the ledger has a line that cannot be read: a person must look at it")
		}
		if paid.Key == key {
			return "It was paid before.", nil
		}
		if paid.Order == in.Order {
			left -= paid.Amount.Cents
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("read the ledger: %w", err)
	}
	if in.Amount.Cents > left || in.Amount.Currency != order.Price.Currency {
		return "", fmt.Errorf("at most %d cents of order %s can be paid back", left, in.Order)
	}
	line, err := json.Marshal(payment{key, in})
	if err == nil {
		_, err = file.Write(append(line, '\n'))
	}
	if err := errors.Join(err, file.Sync()); err != nil {
		return "", fmt.Errorf("write the ledger: %w", err)
	}
	return "It is paid.", nil
}
