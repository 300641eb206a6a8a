package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// add adds a run of the conversion, which began after those that were added before. now is the time
// of the server.
func add(s *report.StepStatusOf, r *record.Run, now time.Time) {
	s.By = r.By.String()
	s.Started, s.Updated, s.Reason, s.Part = &r.Started, &r.Updated, r.Reason, r.Part
	s.PerSecond, s.SecondsLeft, s.Stream = 0, 0, nil
	alive := r.Alive(now)
	if !alive && r.Ended == nil {
		s.Reason = "the run was killed"
		if r.Kind == record.Undo {
			s.Reason = "the undo was killed"
		}
	}
	if r.Kind == record.Undo {
		switch {
		case alive:
			s.Status = report.BeingUndone
		case r.Outcome == record.Done:
			s.Status = report.WasUndone
		default:
			s.Status = report.Stopped
		}
		return
	}
	if r.Progress.Documents > 0 {
		s.Documents = r.Progress.Documents
	}
	s.Read = min(s.Read+r.Progress.Read, max(s.Documents, r.Progress.Read))
	s.Changed, s.Skipped = max(s.Changed, r.Progress.Changed), max(s.Skipped, r.Progress.Skipped)
	if r.Verified != nil {
		s.Verified = &r.Verified.Proven
	}
	switch {
	case alive:
		s.Status, s.Stream = report.Running, r.Progress.Stream
	case r.Outcome == record.Done:
		s.Status, s.Read = report.DoneStep, s.Documents
	default:
		s.Status = report.Stopped
	}
	switch {
	case r.Undone == nil:
	case r.Undone.Complete:
		s.Status = report.WasUndone
	default:
		s.Status, s.Reason = report.Stopped, "the undo is not complete"
	}
	if took := r.Updated.Sub(r.Started).Seconds(); took > 0 && r.Progress.Read > 0 {
		s.PerSecond = float64(r.Progress.Read) / took
		if alive {
			s.SecondsLeft = int64(float64(max(0, s.Documents-s.Read)) / s.PerSecond)
		}
	}
}

// divisions adds up the conversions that are of parts. Those that were undone are left out.
func divisions(steps []report.StepStatusOf) (all []report.DivisionStatus) {
	type division struct {
		report.Conversion
		of string // the number of parts
	}
	var order []division
	parts := make(map[string]map[string][]report.StepStatusOf) // by the division as text
	for _, s := range steps {
		_, of, ok := strings.Cut(s.Part, "/")
		if !ok || s.Status == report.WasUndone {
			continue
		}
		d := division{s.Step.Conversion, of}
		key := fmt.Sprint(d)
		if parts[key] == nil {
			order, parts[key] = append(order, d), make(map[string][]report.StepStatusOf)
		}
		parts[key][s.Part] = append(parts[key][s.Part], s)
	}
	for _, division := range order {
		d := report.DivisionStatus{Conversion: division.Conversion, Missing: []string{}}
		for _, part := range record.Parts(division.of) {
			d.Parts++
			of := parts[fmt.Sprint(division)][part]
			if len(of) == 0 {
				d.Missing = append(d.Missing, part)
				continue
			}
			if !slices.ContainsFunc(of, func(s report.StepStatusOf) bool { return s.Status != report.DoneStep }) {
				d.Done++
				if !slices.ContainsFunc(of, func(s report.StepStatusOf) bool { return s.Verified == nil || !*s.Verified }) {
					d.Proven++
				}
			}
			for _, s := range of {
				d.Documents, d.Read, d.Changed, d.Skipped = d.Documents+s.Documents, d.Read+s.Read, d.Changed+s.Changed, d.Skipped+s.Skipped
			}
		}
		all = append(all, d)
	}
	return all
}
