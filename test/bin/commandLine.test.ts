import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { Misuse } from '../../platform/startError.js';
import { makeTestFolder } from '../support/testFolder.js';
import { runTrueup } from '../support/trueup.js';
import { runCommand } from '../usecases/installation/backup/support/installation.js';

const LIMIT_MS = 180_000;
const NOWHERE = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', TEMPORAL_ADDRESS: '127.0.0.1:1' };
const COMMANDS = [
  ...['start', 'status', 'doctor', 'demo', 'demo reset', 'import bills', 'import data', 'export data'],
  ...['audit', 'reconcile', 'prices import', 'keys create', 'keys list', 'keys revoke', 'keys rotate'],
  ...['keys check', 'sign-in', 'audit-log verify', 'audit-log restored', 'evidence verify', 'secrets rotate'],
  ...['backup', 'restore', 'migrate', 'mcp', 'import history'],
];

const wordsOf = (command: string) => command.split(' ');

describe('./trueup --help', () => {
  it('lists every command with what it does, and the exit codes', async () => {
    const { exit, output } = await runTrueup(['--help']);
    expect(exit).toBe(0);
    for (const name of new Set(COMMANDS.map((command) => wordsOf(command)[0])))
      expect(output).toMatch(new RegExp(`^ {2}${name} {2,}\\w`, 'm'));
    expect(output).toContain('Exit codes: 0 done, 1 found something or failed, 2 wrong use.');
  });

  it.each(COMMANDS)('of %s prints how it is used, and does nothing', async (command) => {
    const { exit, output } = await runTrueup([...wordsOf(command), '--help']);
    expect(output).toMatch(new RegExp(`^Usage: trueup ${command} ?`));
    expect(output).toContain('--help');
    expect(exit).toBe(0);
  });

  it.each(['reconcile', 'doctor'])('is no mistake: %s ends with 0', { timeout: LIMIT_MS }, async (name) => {
    const { exit, output } = await runCommand(name, ['--help'], NOWHERE);
    expect(output).toMatch(/^Usage: trueup (reconcile|doctor)/);
    expect(exit).toBe(0);
  });
});

describe('the documents', () => {
  it('name commands that there are', () => {
    const pages = readdirSync(join(PROJECT_ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => join('docs', name));
    const named = ['README.md', 'CONTRIBUTING.md', ...pages].flatMap((page) =>
      [
        ...readFileSync(join(PROJECT_ROOT, page), 'utf8').matchAll(
          /(?:\.\/|exec \w+ )trueup\s+([a-z][a-z-]*)(?:\s+([a-z]+)\b)?/g,
        ),
      ].map(([, command = '', sub]) => ({ page, command, sub })),
    );
    expect(named.length).toBeGreaterThan(40);
    const wrong = named.filter(
      ({ command, sub }) => !COMMANDS.includes(command) && !COMMANDS.includes(`${command} ${sub}`),
    );
    expect(wrong).toEqual([]);
  });
});

describe('wrong use', () => {
  it.each(['start', 'demo', 'demo reset', 'doctor', 'migrate'])(
    'of a command without arguments does nothing and ends with 2: %s',
    { timeout: LIMIT_MS },
    async (name) => {
      const { exit, output } = await runCommand(name, ['--dry-run'], NOWHERE);
      expect(output).toBe(
        `Unknown option '--dry-run'.\nUsage: trueup ${name} ${name === 'demo' ? '[command]' : '[options]'}\ntrueup ${name} --help explains it.\n`,
      );
      expect(exit).toBe(2);
    },
  );

  it.each(COMMANDS)('of %s prints what is wrong and the usage', async (command) => {
    const refused = runTrueup([...wordsOf(command), '--no-such-option', 'x', 'y', 'z']);
    await expect(refused).rejects.toThrow(Misuse);
    await expect(refused).rejects.toThrow(
      new RegExp(
        `^(Unknown option '--no-such-option'|--(provider|because|from) is missing)\\.\nUsage: trueup ${command} .*\ntrueup ${command} --help`,
      ),
    );
  });

  it.each([
    [[], /^What is to be done\?\nUsage: trueup /],
    [['keys'], /^What is to be done\?\nUsage: trueup keys /],
    [['statsu'], /^Unknown command 'statsu'\n\(Did you mean status\?\)\nUsage: trueup /],
    [['status', 'more'], /^Too many arguments for 'status'\. .*\nUsage: trueup status /],
    [['restore'], /^Missing required argument 'file'\.\nUsage: trueup restore \[options\] <file>\n/],
    [['audit'], /^--provider is missing\.\nUsage: trueup audit /],
    [
      ['audit', '--provider', 'openai', '--format', 'xml'],
      /^--format is xml: give one of table, json, csv\.\n/,
    ],
    [['audit', '--provider', 'openai', '--json', '--format', 'csv'], /^Option '--json' cannot be used with/],
    [
      ['audit-log', 'restored', '--because', ' '],
      /^Say why rows are lost\.\nUsage: trueup audit-log restored /,
    ],
    [['keys', 'create', '--role'], /^Option '--role <role>' argument missing\.\nUsage: trueup keys create /],
  ])('prints one sentence: %j', async (words, message) => {
    await expect(runTrueup(words, { environment: NOWHERE })).rejects.toThrow(message);
  });
});

describe('the npm scripts of earlier versions', () => {
  const { scripts } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const replaced = Object.entries(scripts).filter(([, script]) => script.includes('replaced.mjs'));

  it('each name a command that there is', () => {
    expect(
      replaced.map(([, script]) => script.replace(/^node bin\/replaced\.mjs '?(.+?)'?$/, '$1')).sort(),
    ).toEqual(
      COMMANDS.filter(
        (command) => !['start', 'demo', 'sign-in', 'mcp', 'import history'].includes(command),
      ).sort(),
    );
  });

  it('end with 2 and the command that replaces them', () => {
    const { status, stderr } = spawnSync('npm', ['run', 'key:create', '--', '--role', 'admin'], {
      cwd: PROJECT_ROOT,
      encoding: 'utf8',
    });
    expect(stderr).toContain(
      'npm run key:create is gone: use ./trueup keys create with the same options; --help lists them.\n',
    );
    expect(status).toBe(2);
  });
});

describe('the executable', () => {
  let folder: string;
  beforeAll(() => {
    folder = makeTestFolder('executable');
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('works from any folder and through symbolic links', { timeout: LIMIT_MS }, () => {
    mkdirSync(join(folder, 'bin with space'));
    symlinkSync(join(PROJECT_ROOT, 'trueup'), join(folder, 'first'));
    symlinkSync('../first', join(folder, 'bin with space', 'trueup'));
    for (const file of [join(PROJECT_ROOT, 'trueup'), join(folder, 'first'), './bin with space/trueup'])
      expect(execFileSync(file, ['keys', '--help'], { cwd: folder, encoding: 'utf8' }), file).toMatch(
        /^Usage: trueup keys /,
      );
    const found = spawnSync('trueup', ['status', '--json'], {
      cwd: folder,
      encoding: 'utf8',
      env: {
        ...process.env,
        PATH: `${join(folder, 'bin with space')}:${process.env.PATH}`,
        DATA_DIR: folder,
      },
    });
    expect(JSON.parse(found.stdout)).toMatchObject({ running: false, data_dir: folder });
    expect(found.status).toBe(1);
    const wrong = spawnSync(join(folder, 'first'), ['backup', 'x'], { cwd: folder, encoding: 'utf8' });
    expect([wrong.status, wrong.stderr]).toEqual([
      2,
      expect.stringMatching(/^Too many arguments for 'backup'/m),
    ]);
  });
});

describe('--json', () => {
  const environment = { DATA_DIR: join(PROJECT_ROOT, 'nowhere'), PORT: '1', ...NOWHERE };

  it('of status has the parts of the table', async () => {
    const [table, json] = [
      await runTrueup(['status'], { environment }),
      await runTrueup(['status', '--json'], { environment }),
    ];
    const status = JSON.parse(json.output);
    const rows = table.output
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/ +/).slice(0, 2));
    expect(rows).toEqual(
      ['postgres', 'temporal', 'api', 'worker'].map((part) => [part, status[part].status]),
    );
    expect([table.exit, json.exit]).toEqual([1, 1]);
  });

  it('of evidence verify has the difference that the text names', async () => {
    const [text, json] = [
      await runTrueup(['evidence', 'verify', 'no.tar.gz']),
      await runTrueup(['evidence', 'verify', 'no.tar.gz', '--json']),
    ];
    expect(text.output).toContain('DIFFERENCE no.tar.gz: there is no such file.');
    expect(JSON.parse(json.output)).toEqual({
      claim: null,
      checks: [],
      differences: [{ file: 'no.tar.gz', line: null, message: 'there is no such file' }],
    });
    expect([text.exit, json.exit]).toEqual([1, 1]);
  });

  it('of doctor has the lines of the table', async () => {
    const [table, json] = [
      await runTrueup(['doctor'], { environment }),
      await runTrueup(['doctor', '--json'], { environment }),
    ];
    const findings = JSON.parse(json.output) as { what: string; ok: boolean; text: string }[];
    const lines = findings.map(({ what, ok, text }) => `  ${ok ? '✓' : '✗'} ${what.padEnd(10)} ${text}`);
    // The free space may change between the two.
    const steady = (all: string[]) => all.filter((line) => !/ (disk|clock) /.test(line));
    expect(steady(table.output.trimEnd().split('\n'))).toEqual(steady(lines));
    expect([table.exit, json.exit]).toEqual([1, 1]);
  });
});
