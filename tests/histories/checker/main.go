// Judges a history of operations on registers: whether they could have been done one after the other, each between its
// call and its return. One operation a line on standard input, a verdict on standard output.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// operation is one that a client began. A return that is not known (null) may have been, and may come, at any time.
type operation struct {
	Client   int    `json:"client"`
	Key      string `json:"key"`
	Op       string `json:"op"`
	Value    string `json:"value"`
	Expected string `json:"expected"`
	Call     int64  `json:"call"`
	Return   *int64 `json:"return"`
	Outcome  string `json:"outcome"`
	Seen     string `json:"seen"`
}

type verdict struct {
	Operations int      `json:"operations"`
	Keys       int      `json:"keys"`
	Illegal    []string `json:"illegal"`
	Undecided  []string `json:"undecided"`
}

// register is one that is not there ("") or has a value.
var register = porcupine.Model{
	Init:              func() any { return "" },
	Step:              func(state, input, output any) (bool, any) { return step(state.(string), input.(operation)) },
	DescribeOperation: func(input, output any) string { return describe(input.(operation)) },
}

// step says whether an operation may have found the register so, and what it made of it.
func step(before string, done operation) (bool, string) {
	var takes bool
	switch done.Op {
	case "get":
		return done.Seen == before, before
	case "create":
		takes = before == ""
	case "put":
		takes = before != ""
	case "cas":
		takes = before == done.Expected
	}
	switch {
	case done.Outcome == "unknown" && !takes:
		return true, before
	case (done.Outcome == "refused") == takes:
		return false, before
	case takes:
		return true, done.Value
	}
	return true, before
}

func describe(done operation) string {
	switch done.Op {
	case "get":
		return fmt.Sprintf("get -> %q", done.Seen)
	case "cas":
		return fmt.Sprintf("cas %q to %q: %s", done.Expected, done.Value, done.Outcome)
	}
	return fmt.Sprintf("%s %q: %s", done.Op, done.Value, done.Outcome)
}

func read(from io.Reader) (map[string][]porcupine.Operation, int, error) {
	histories, count := map[string][]porcupine.Operation{}, 0
	lines := json.NewDecoder(bufio.NewReader(from))
	lines.DisallowUnknownFields()
	for {
		var each operation
		if err := lines.Decode(&each); err == io.EOF {
			return histories, count, nil
		} else if err != nil {
			return nil, 0, fmt.Errorf("operation %d: %w", count+1, err)
		}
		if !slices.Contains([]string{"get", "create", "put", "cas"}, each.Op) ||
			!slices.Contains([]string{"ok", "refused", "unknown"}, each.Outcome) {
			return nil, 0, fmt.Errorf("operation %d: %s %s is not known", count+1, each.Op, each.Outcome)
		}
		end := int64(math.MaxInt64)
		if each.Return != nil {
			end = *each.Return
		}
		histories[each.Key] = append(histories[each.Key],
			porcupine.Operation{ClientId: each.Client, Input: each, Output: each, Call: each.Call, Return: end})
		count++
	}
}

func main() {
	patience := flag.Duration("patience", time.Minute, "for how long one register's history is looked at")
	picture := flag.String("picture", "", "where to draw the first history that could not have been (HTML)")
	flag.Parse()
	histories, count, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "reading the history:", err)
		os.Exit(2)
	}
	found := verdict{Operations: count, Keys: len(histories), Illegal: []string{}, Undecided: []string{}}
	for key, history := range histories {
		result, info := porcupine.CheckOperationsVerbose(register, history, *patience)
		switch result {
		case porcupine.Illegal:
			if *picture != "" && len(found.Illegal) == 0 {
				err = porcupine.VisualizePath(register, info, *picture)
			}
			found.Illegal = append(found.Illegal, key)
		case porcupine.Unknown:
			found.Undecided = append(found.Undecided, key)
		}
	}
	slices.Sort(found.Illegal)
	slices.Sort(found.Undecided)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "writing the verdict:", err)
		os.Exit(2)
	}
}
