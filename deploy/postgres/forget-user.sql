-- Puts an alias in place of a user's name and of their machines' names, wherever a ledger on PostgreSQL has them.
-- docs/privacy.md says when. As the owner of the tables:
--
--   psql -v organisation=default -v name=alice -v alias=former-1 -f deploy/postgres/forget-user.sql DATABASE
--
-- Rows stay, and so do all sums of teams, projects, agents, models and days, and the budgets of more than this user.
\set ON_ERROR_STOP on
BEGIN;

-- First, because an alias that somebody has already ends it here, as a duplicate key: two people would become one.
UPDATE label SET value = :'alias' WHERE org_id = :'organisation' AND dimension = 'user' AND value = :'name';

CREATE TEMPORARY TABLE machine ON COMMIT DROP AS
    SELECT host, :'alias' || '-' || row_number() OVER (ORDER BY host) AS alias
    FROM (SELECT DISTINCT host FROM session WHERE org_id = :'organisation' AND user_id = :'name') AS used;
UPDATE turn SET user_id = :'alias', host = machine.alias FROM machine
    WHERE org_id = :'organisation' AND user_id = :'name' AND turn.host = machine.host;
UPDATE session SET user_id = :'alias', host = machine.alias, title = NULL, title_folded = NULL FROM machine
    WHERE org_id = :'organisation' AND user_id = :'name' AND session.host = machine.host;
UPDATE series SET user_id = :'alias' WHERE org_id = :'organisation' AND user_id = :'name';

-- Keys of sessions are made of the name; `acp-proxy doctor --rebuild` makes new ones.
DELETE FROM session_key WHERE org_id = :'organisation' AND user_id = :'name';
DELETE FROM settings WHERE org_id = :'organisation' AND user_id = :'name';

-- How the windows of their plans stood is of no use to anybody else.
DELETE FROM plan_window WHERE org_id = :'organisation' AND user_id = :'name';
DELETE FROM plan_change WHERE org_id = :'organisation' AND user_id = :'name';

-- Budgets per user: how often something was decided, and what was granted, stays; what is kept of windows goes.
UPDATE decision SET value = :'alias' WHERE org_id = :'organisation' AND value = :'name';
UPDATE overshoot SET value = :'alias' WHERE org_id = :'organisation' AND value = :'name';
UPDATE granted SET why = '' WHERE org_id = :'organisation' AND :'name' IN (value, who);
UPDATE granted SET value = :'alias' WHERE org_id = :'organisation' AND value = :'name';
UPDATE granted SET who = :'alias' WHERE org_id = :'organisation' AND who = :'name';
DELETE FROM kept_sum WHERE org_id = :'organisation' AND whose::json ->> 'user' = :'name';
DELETE FROM account
    WHERE org_id = :'organisation' AND CASE WHEN key LIKE '[%' THEN key::json -> 5 ->> 'user' = :'name' END;
DELETE FROM announced -- of a rolling budget with the number of the window behind it
    WHERE org_id = :'organisation' AND CASE
        WHEN notice LIKE '[%' THEN regexp_replace(notice, '#[0-9]+$', '')::json -> 5 ->> 'user' = :'name'
    END;
DELETE FROM surcharge
    WHERE org_id = :'organisation' AND CASE WHEN account LIKE '[%' THEN account::json -> 5 ->> 'user' = :'name' END;

-- Turns of proxies that were killed: four days later each would be booked under the name, at what it held.
DELETE FROM hold WHERE org_id = :'organisation' AND turn IN (
    SELECT turn FROM open_turn WHERE org_id = :'organisation' AND user_id = :'name'
);
DELETE FROM open_turn WHERE org_id = :'organisation' AND user_id = :'name';

-- What people were told of them.
CREATE TEMPORARY TABLE told ON COMMIT DROP AS
    SELECT id FROM notice
    WHERE org_id = :'organisation' AND :'name' IN (content::json ->> 'user', content::json ->> 'value');
DELETE FROM delivery WHERE org_id = :'organisation' AND notice IN (SELECT id FROM told);
DELETE FROM notice WHERE org_id = :'organisation' AND id IN (SELECT id FROM told);

SELECT count(*) AS "rows under the alias" FROM turn WHERE org_id = :'organisation' AND user_id = :'alias';
COMMIT;
