"""The task service: what the BMC still does, and what it has done.

No Retry-After is sent: sushy, waiting for a call to end, crashes on it.
A task's own path answers 202 for as long as it goes on: a client that was given the task as what to watch must not take it for
done. Its monitor answers 202 too, and then with what the call would have been answered with, had it been done at once.
"""

from __future__ import annotations

from typing import Final

from ingot.lab.components import CreateVolume, Task
from ingot.lab.redfish.answers import GENERAL, Answer, Document, Refusal, collection, link, missing
from ingot.lab.redfish.dispatch import Call, Table
from ingot.lab.redfish.server import BASE, Server

SERVICE: Final = f"{BASE}/TaskService"
TASKS: Final = f"{SERVICE}/Tasks"
MONITORS: Final = f"{SERVICE}/TaskMonitors"
_JOB_STATES: Final = {
    "New": "Downloading",
    "Pending": "Scheduled",
    "Running": "Running",
    "Completed": "Completed",
    "Exception": "Failed",
}
_JOB_TYPES: Final = {
    "create-volume": "RAIDConfiguration",
    "delete-volume": "RAIDConfiguration",
    "update-firmware": "FirmwareUpdate",
    "configure-bios": "BIOSConfiguration",
    "import-configuration": "ImportConfiguration",
    "export-configuration": "ExportConfiguration",
}


def add(table: Table) -> None:
    table.show(SERVICE, _service)
    table.show(
        TASKS,
        lambda call: collection(TASKS, "Tasks", [f"{TASKS}/{task.id}" for task in call.server.parts.tasks]),
    )
    table.show(f"{TASKS}/{{task}}", lambda call: document(call.server, _named(call)))
    table.act("GET", f"{TASKS}/{{task}}", _look)
    table.act("GET", f"{MONITORS}/{{task}}", _monitor)


def accepted(server: Server, task: Task) -> Answer:
    """202 with the task as what to watch."""
    return Answer(
        status=202,
        document=document(server, task),
        headers={"Location": f"{TASKS}/{task.id}"},
    )


def monitored(task: Task) -> Answer:
    """202 with the monitor as what to watch: it ends with the outcome of the call."""
    return Answer(status=202, headers={"Location": f"{MONITORS}/{task.id}"})


def document(server: Server, task: Task) -> Document:
    failed = task.state == "Exception"
    shown: Document = {
        "@odata.id": f"{TASKS}/{task.id}",
        "@odata.type": "#Task.v1_7_1.Task",
        "Id": task.id,
        "Name": task.name,
        "TaskState": task.state,
        "TaskStatus": "Critical" if failed else "OK",
        "PercentComplete": task.percent,
        "StartTime": task.started.isoformat(timespec="seconds"),
        "TaskMonitor": f"{MONITORS}/{task.id}",
        "Messages": [_message(task)] if task.message else [],
    }
    if task.ended is not None:
        shown["EndTime"] = task.ended.isoformat(timespec="seconds")
    if server.profile.dell:
        shown["Oem"] = {"Dell": job(task)}
    return shown


def job(task: Task) -> Document:
    """The task as Dell's job queue has it."""
    ended = task.ended is not None
    return {
        "@odata.type": "#DellJob.v1_4_0.DellJob",
        "Id": task.id,
        "Name": task.name,
        "Description": "Job Instance",
        "JobState": _JOB_STATES[task.state],
        "JobType": _JOB_TYPES[str(task.work.__struct_config__.tag)],
        "Message": task.message or "Task in progress.",
        "MessageId": "PR21" if task.state == "Exception" else "PR19" if ended else "PR20",
        "MessageArgs": [],
        "PercentComplete": task.percent,
        "StartTime": "TIME_NOW",
        "EndTime": "TIME_NA",
        "CompletionTime": task.ended.isoformat(timespec="seconds") if task.ended else None,
    }


def _message(task: Task) -> Document:
    failed = task.state == "Exception"
    return {
        "MessageId": "TaskEvent.1.0.TaskAborted" if failed else "TaskEvent.1.0.TaskProgressChanged",
        "Message": task.message,
        "MessageArgs": [],
        "Severity": "Critical" if failed else "OK",
        "Resolution": "None",
    }


def _service(_: Call) -> Document:
    return {
        "@odata.id": SERVICE,
        "Id": "TaskService",
        "Name": "Task Service",
        "ServiceEnabled": True,
        "Tasks": link(TASKS),
    }


def _named(call: Call) -> Task:
    task = call.server.parts.task(call.ids["task"])
    if task is None:
        raise missing(call.path)
    return task


async def _look(call: Call) -> Answer:
    task = _named(call)
    if task.live:
        return accepted(call.server, task)
    return Answer(status=200, document=document(call.server, task))


async def _monitor(call: Call) -> Answer:
    task = _named(call)
    if task.live:
        return monitored(task)
    if task.state == "Exception":
        raise Refusal(500, GENERAL, task.message)
    if isinstance(task.work, CreateVolume):
        volume = task.work.volume
        path = f"{call.server.system}/Storage/{volume.storage}/Volumes/{volume.id}"
        return Answer(status=201, document=link(path), headers={"Location": path})
    return Answer(status=200, document=document(call.server, task))
