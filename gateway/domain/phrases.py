"""Every sentence the gateway itself says to a person, in one table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """English; another language is another instance. `{…}` are filled in where the sentence is used."""

    failed: str = "Sorry, I could not answer that. If it keeps happening, tell the owner this reference: {reference}"
    unavailable: str = (
        "Sorry, my language model does not answer at the moment. Please try again in a while. ({reference})"
    )
    filtered: str = "Sorry, the language model's content filter stopped that answer. ({reference})"
    set_aside: str = (
        "Sorry, something went wrong twice while I worked on your message, so I have put it aside. ({reference})"
    )
    too_long: str = "Sorry, that took me longer than I may work on one message, so I gave up. ({reference})"
    too_many_rounds: str = (
        "Sorry, I used my tools {rounds} times for that without coming to an end, so I gave up. ({reference})"
    )
    stopped: str = "Stopped."
    stopped_waiting: str = "Stopped. I keep what you wrote meanwhile in mind, and do not answer it either."
    nothing_to_stop: str = "There is nothing to stop."
    overfull: str = (
        "{most} messages wait for my answer here already, so I have not taken this one, nor those that follow it until"
        " I have answered. Please send them again then."
    )
    unlisted_person: str = "I do not know you yet. To let you in, my owner needs this id: {id}"
    unlisted_chat: str = "I am not allowed to talk in this chat yet. To let me, my owner needs its id: {id}"
    cut_off: str = "(My answer was cut off here, since it became too long.)"
    compacted: str = "Earlier messages were summed up here, so that the conversation can go on."
    trimmed: str = "(This conversation has become very long: I no longer have its oldest part in mind.)"
    ask_compaction: str = (
        "I could not sum up the older part of this conversation, which has become very long. What shall I do? "
        "If you say nothing else in {minutes} minutes, I leave its oldest part out."
    )
    try_again: str = "Try again"
    leave_out: str = "Leave out its oldest tenth"
    nothing_to_compact: str = "There is nothing to sum up yet."
    not_compacted: str = "I could not sum up the earlier messages just now. Nothing was changed."
    uncertain: str = "(A part of my answer may not have arrived here.)"


ENGLISH = Phrases()
