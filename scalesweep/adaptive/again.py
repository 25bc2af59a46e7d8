"""Finished runs that are measured again because their user says so: ``scalesweep run --again``."""

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError, choices
from scalesweep.core.formatting import counted
from scalesweep.core.locks import claim
from scalesweep.core.record import RECORD, read_record
from scalesweep.state.run_state import take_away
from scalesweep.tables.machine_load import DISTURBED, load_of


def measure_again(campaign: Campaign, wanted: str, dry: bool) -> str:
    """Set aside the records of an experiment's runs, or of all that other processes disturbed.

    ``dry``: only say how many. Returns what happened, in words. Raises UserError for another word,
    or while another call works in the results folder.
    """
    names: dict[str, set[str]] = {}
    for e in campaign.experiments:
        for run in (*e.runs, *e.profiles):
            names.setdefault(run.run_id, {"disturbed"}).update((e.name, e.part_of))
    known = sorted(set().union(*names.values()) - {""})
    if wanted not in known:
        raise UserError(f"--again: {wanted!r} is no experiment; {choices(wanted, known)}")
    folder = campaign.runs_folder
    chosen = [it for it in names if wanted in names[it] and (folder / it / RECORD).is_file()]
    if wanted == "disturbed":
        loads = {run_id: load_of(read_record(folder / run_id / RECORD)) for run_id in chosen}
        chosen = [run_id for run_id, load in loads.items() if (load or 0) > DISTURBED]
    if not dry and chosen:
        with claim(campaign.results):
            for run_id in chosen:
                take_away(folder / run_id)
    return f"{counted(len(chosen), 'finished run')} to be measured again"
