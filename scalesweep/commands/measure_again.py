"""Runs that the user wants measured again: their records are set aside, and they are pending."""

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError, choices
from scalesweep.core.formatting import counted
from scalesweep.core.locks import claim
from scalesweep.core.record import RECORD, read_record
from scalesweep.state.run_state import take_away
from scalesweep.tables.machine_load import DISTURBED, load_of

DISTURBED_RUNS = "disturbed"


def measure_again(campaign: Campaign, wanted: str, dry: bool) -> str:
    """Set aside the records of an experiment's runs, or of all that other processes disturbed.

    ``dry``: only say how many. Returns what happened, in words. Raises UserError for another word,
    or while another call works in the results folder.
    """
    names = {
        run.run_id: {e.name, e.part_of}
        for e in campaign.experiments
        for run in (*e.runs, *e.profiles)
    }
    known = [DISTURBED_RUNS, *sorted(set().union(*names.values()) - {""})]
    if wanted not in known:
        raise UserError(f"--again: {wanted!r} is no experiment; {choices(wanted, known)}")
    folder = campaign.runs_folder
    done = [run_id for run_id in names if (folder / run_id / RECORD).is_file()]
    if wanted == DISTURBED_RUNS:
        loads = {run_id: load_of(read_record(folder / run_id / RECORD)) for run_id in done}
        chosen = [run_id for run_id in done if (loads[run_id] or 0) > DISTURBED]
    else:
        chosen = [run_id for run_id in done if wanted in names[run_id]]
    if not dry and chosen:
        with claim(campaign.results):
            for run_id in chosen:
                take_away(folder / run_id)
    return f"{counted(len(chosen), 'finished run')} to be measured again"
