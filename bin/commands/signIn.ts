import { Command, Option } from 'commander';
import { OrgDb } from '../../db/orgDb.js';
import { assertPossibleTerms, ROLES, type Role } from '../../domain/access/keyRules.js';
import { LINK_MINUTES } from '../../domain/access/sessionRules.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid } from '../../domain/ids.js';
import { Misuse, StartError } from '../../platform/startError.js';
import { makeSignInLink, shownBaseUrl } from '../service/signInLink.js';
import { chooseOrganization, withToolDatabase } from '../service/toolDatabase.js';
import { jsonOption, organizationOption, print, printJson, type Terminal } from '../terminal/terminal.js';

interface SignInOptions {
  role: Role;
  workspace?: string;
  org?: string;
  json?: boolean;
}

/** Prints a link with which a browser signs in once; everyone who can run it may give every role. */
export function command(terminal: Terminal): Command {
  return new Command('sign-in')
    .addOption(new Option('--role <role>', 'what the session may do').choices(ROLES).default('admin'))
    .addOption(
      new Option('--workspace <id>', 'the workspace to which it is bound, wsp_…').argParser(readWorkspace),
    )
    .addOption(organizationOption())
    .addOption(jsonOption())
    .action((options: SignInOptions) => printLink(terminal, options));
}

function readWorkspace(text: string): string {
  const uuid = findUuid('wsp', text);
  if (uuid === undefined) throw new Misuse(`--workspace is ${text}: give its id, wsp_….`);
  return uuid;
}

async function printLink(terminal: Terminal, options: SignInOptions): Promise<void> {
  const config = terminal.readConfig();
  const terms = { role: options.role, scopes: null, workspaceId: options.workspace ?? null };
  try {
    assertPossibleTerms(terms);
    const link = await withToolDatabase(config, async (database) => {
      const orgDb = new OrgDb(database, await chooseOrganization(database, options.org));
      return makeSignInLink(orgDb, shownBaseUrl(config), terms, 'sign-in');
    });
    if (options.json) return printJson(terminal, { link, minutes: LINK_MINUTES });
    print(terminal, `${link}\nIt signs one browser in, once, within ${LINK_MINUTES} minutes.`);
  } catch (error) {
    throw error instanceof DomainError ? new StartError(`${error.message}.`, { cause: error }) : error;
  }
}
