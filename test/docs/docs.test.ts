import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { statusOf } from '../../api/problem.js';
import { ERROR_CODES } from '../../domain/errors.js';
import { createMetrics } from '../../platform/metrics.js';

const ROOT = path.resolve(import.meta.dirname, '../..');
const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'data/README.md',
  ...readdirSync(path.join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => path.join('docs', name)),
];
const textOf = (page: string): string => readFileSync(path.join(ROOT, page), 'utf8');
const TEXTS = new Map(PAGES.map((page) => [page, textOf(page)]));

const README_WORDS_MAX = 800;

/** Codes that no answer has today: they are kept for limits and negotiation of a later version. */
const UNUSED_CODES = ['not_acceptable'];
/** Codes that runs contain, or that an effect returns to its workflow, and that no answer to a request contains. */
const RUN_CODES = [
  'credentials_refused',
  'command_too_late',
  'invalid_pdf',
  'invoice_encrypted',
  'too_many_pages',
  'resource_limit',
  'no_line_items',
  'ocr_unavailable',
];

/** The anchor that a heading gets where the pages are shown. */
function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-');
}

function anchorsOf(page: string): Set<string> {
  return new Set(
    [...(TEXTS.get(page) ?? '').matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading ?? '')),
  );
}

/** Broken relative links of a page: missing files, and missing headings. */
function brokenLinks(page: string, text: string): string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [file = '', anchor] = target.split('#');
      const place = file === '' ? page : path.normalize(path.join(path.dirname(page), file));
      if (!existsSync(path.join(ROOT, place))) return true;
      return anchor !== undefined && !anchorsOf(place).has(anchor);
    })
    .map((target) => `${page}: ${target}`);
}

describe('the documents', () => {
  it('link to what exists, headings included', () => {
    expect([...TEXTS].flatMap(([page, text]) => brokenLinks(page, text))).toEqual([]);
    expect(
      brokenLinks('docs/x.md', '[a](nowhere.md) [b](api.md#no-such-heading) [c](api.md#access)'),
    ).toEqual(['docs/x.md: nowhere.md', 'docs/x.md: api.md#no-such-heading']);
  });

  it('name files, commands and metrics that exist', () => {
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> };
    const { registry, installation } = createMetrics();
    const metrics = new Set(
      [registry, installation].flatMap((one) => one.getMetricsAsArray()).map(({ name }) => name),
    );
    const testFiles = new Set(
      readdirSync(path.join(ROOT, 'test'), { recursive: true, encoding: 'utf8' }).map((name) =>
        path.basename(name),
      ),
    );
    const wrong = [...TEXTS].flatMap(([page, text]) =>
      [
        ...[
          ...text.matchAll(
            /`((?:activities|adapters|api|bin|db|dispatch|docs|domain|lab|platform|test|usecases|workflows)\/[\w./-]+\.(?:ts|md|json|mjs))`/g,
          ),
        ]
          .map(([, file = '']) => file)
          .filter((file) => !existsSync(path.join(ROOT, file))),
        ...[...text.matchAll(/(?<![*.\w])(?:\w+\/)*(\w+(?:\.slow)?\.test\.ts)/g)]
          .map(([, name = '']) => name)
          .filter((name) => !testFiles.has(name)),
        ...[...text.matchAll(/npm run (?:--silent )?([a-z][\w:-]*)/g)]
          .map(([, script = '']) => script)
          .filter((script) => !scripts[script] || scripts[script].includes('bin/replaced.mjs')),
        ...[...text.matchAll(/`(trueup_\w+)/g)]
          .map(([, name = '']) => name)
          .filter((name) => !metrics.has(name)),
      ].map((name) => `${page}: ${name}`),
    );
    expect(wrong).toEqual([]);
  });

  it('start no title with a relative clause', () => {
    const titles = [...TEXTS].flatMap(([page, text]) =>
      [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => `${page}: ${title}`),
    );
    expect(titles.length).toBeGreaterThan(100);
    expect(titles.filter((title) => /: (?:What|How|Who|Whoever|Whose|Whom|That|Why)\b/.test(title))).toEqual(
      [],
    );
  });

  it('list every error code beside its status', () => {
    const listed = new Map(
      [...textOf('docs/api.md').matchAll(/^\| (\d{3}) \| (.+) \|$/gm)].flatMap(([, status, codes = '']) =>
        [...codes.matchAll(/`([a-z_]+)`/g)].map(([, code = '']) => [code, Number(status)] as const),
      ),
    );
    const answered = ERROR_CODES.filter((code) => ![...UNUSED_CODES, ...RUN_CODES].includes(code));
    expect(Object.fromEntries(listed)).toEqual(
      Object.fromEntries(answered.map((code) => [code, statusOf(code)])),
    );
  });

  it(`keep the README within ${README_WORDS_MAX} words`, () => {
    expect(textOf('README.md').split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(README_WORDS_MAX);
  });

  it('do not mention the places in which they were written', () => {
    const foreign = new RegExp(
      ['registry\\.npm' + 'js', 'proxy\\.golang\\.' + 'org', 'pypi\\.' + 'org', '/wo' + 'rk/'].join('|'),
    );
    expect([...TEXTS].filter(([, text]) => foreign.test(text)).map(([page]) => page)).toEqual([]);
  });
});
