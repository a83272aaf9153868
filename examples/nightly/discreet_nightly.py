"""A private sample for each client of every day, by Airflow: put this file into the folder of DAGs.

The day is the data interval of a run, so a run that is retried, cleared or backfilled asks for the round of its own day. It gives the same
samples again and spends nothing more.
"""

from datetime import UTC, datetime, timedelta

from airflow import DAG
from airflow.providers.standard.operators.bash import BashOperator
from airflow.timetables.interval import CronDataIntervalTimetable

FOLDER = "/srv/release"  # with nightly.sh, agreement.json, release.secret, population and data
COMMAND = "./nightly.sh {{ data_interval_start | ds }}"

with DAG(
    dag_id="discreet_nightly",
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),  # the interval is the day that has just ended
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=True,  # a missed day is a round of its own
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
):
    BashOperator(task_id="release", bash_command=COMMAND, cwd=FOLDER)
