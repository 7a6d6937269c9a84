import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '../..');
const FOLDER = path.join(ROOT, 'docs/decisions');
const RECORDS_MAX = 50;
const RECORD_LINES_MAX = 60;

const RECORDS = readdirSync(FOLDER)
  .filter((name) => name !== 'README.md')
  .map((name) => ({ name, text: readFileSync(path.join(FOLDER, name), 'utf8') }));
const NUMBERS = RECORDS.map(({ name }) => name.slice(0, 4));
const INDEX = readFileSync(path.join(FOLDER, 'README.md'), 'utf8');

/** Folders without texts of the project. */
const SKIPPED = ['node_modules', 'dist', 'dist-web', 'dist-sdk', 'docs/decisions', '.venv'];
const TEXT_FILE = /\.(?:ts|tsx|mjs|js|py|md|ya?ml|sh|toml)$|^Dockerfile$/;

/** Paths of all text files below a folder of the repository. */
function textFilesOf(folder: string): string[] {
  return readdirSync(path.join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const file = path.posix.join(folder, entry.name);
    if (entry.isDirectory()) {
      const isSkipped = entry.name.startsWith('.') || SKIPPED.some((name) => file.endsWith(name));
      return isSkipped ? [] : textFilesOf(file);
    }
    return TEXT_FILE.test(entry.name) ? [file] : [];
  });
}

/** Numbers of decisions that a text refers to, as `0000`. */
function referencesIn(text: string): string[] {
  const lists = [
    ...text.matchAll(/\bdecisions\/(\d{1,4}(?:(?:,| and| to) \d{4})*)/g),
    ...text.matchAll(/\b(?:decisions?|ADR)[ -](\d{1,4}(?:(?:,| and| to) \d{1,4})*)\b/gi),
  ];
  return lists.flatMap(([, list = '']) => list.match(/\d+/g) ?? []).map((number) => number.padStart(4, '0'));
}

/** References to records that do not exist, by their number or by their file's name. */
function danglingReferences(file: string, text: string): string[] {
  const names = [...text.matchAll(/\bdecisions\/(\d{4}-[\w-]+\.md)/g)].map(([, name = '']) => name);
  return [
    ...referencesIn(text).filter((number) => !NUMBERS.includes(number)),
    ...names.filter((name) => !RECORDS.some((record) => record.name === name)),
  ].map((reference) => `${file}: ${reference}`);
}

describe('the decision records', () => {
  it(`are at most ${RECORDS_MAX}, numbered from 0001 without a gap`, () => {
    expect(RECORDS.length).toBeGreaterThan(0);
    expect(RECORDS.length).toBeLessThanOrEqual(RECORDS_MAX);
    expect(NUMBERS).toEqual(RECORDS.map((_, at) => String(at + 1).padStart(4, '0')));
  });

  it.each(RECORDS)(
    '$name has a title, a status, a date, its sections and at most 60 lines',
    ({ name, text }) => {
      const title = new RegExp(
        `^# ${Number(name.slice(0, 4))}\\. (?!What |How |Who |Whoever |Whom |Whose |That |Why )[^\\n]+\\n\\n`,
      );
      expect(text).toMatch(title);
      expect(text).toMatch(
        /^\*\*Status\.\*\* (?:Accepted|Superseded by \[).*\*\*Date\.\*\* \d{4}-\d{2}-\d{2}$/m,
      );
      for (const section of ['Context', 'Decision', 'Consequences'])
        expect(text).toContain(`\n## ${section}\n`);
      expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(RECORD_LINES_MAX);
    },
  );

  it('are listed once each in the index, with title and status', () => {
    const lines = INDEX.split('\n').filter((line) => line.startsWith('- '));
    const expected = RECORDS.map(({ name, text }) => {
      const [, title = ''] = /^# (.+)$/m.exec(text) ?? [];
      const [, status = ''] = /^\*\*Status\.\*\* (.+?)\. /m.exec(text) ?? [];
      return `- [${title}](${name}): ${status.toLowerCase()}`;
    });
    expect([...lines].sort()).toEqual(expected.sort());
  });

  it('exist wherever the repository refers to one', () => {
    const files = textFilesOf('.');
    expect(files).toContain('db/usage/usageLog.ts');
    const dangling = files
      .filter((file) => file !== 'test/docs/decisions.test.ts')
      .flatMap((file) => danglingReferences(file, readFileSync(path.join(ROOT, file), 'utf8')));
    const records = [...RECORDS, { name: 'README.md', text: INDEX }];
    expect([
      ...dangling,
      ...records.flatMap(({ name, text }) => danglingReferences(`docs/decisions/${name}`, text)),
    ]).toEqual([]);
    for (const text of ['decision 999', 'docs/decisions/0998, 0999', 'decisions/0001-gone.md', 'ADR 0999'])
      expect(danglingReferences('x', text), text).not.toEqual([]);
  });
});
