import type { components } from '../../api/client';

export type Section = components['schemas']['ReportSchedule']['sections'][number];

const NAMES: Record<Section, string> = {
  summary: 'Summary',
  spend: 'Spend',
  violations: 'Violations',
  enforcement: 'Enforcement',
  reconciliation: 'Reconciliation',
};

export const SECTION_OPTIONS = Object.entries(NAMES).map(([value, label]) => ({
  value: value as Section,
  label,
}));
export const ALL_SECTIONS = SECTION_OPTIONS.map(({ value }) => value);

export function sectionNames(sections: readonly Section[]): string {
  return sections.length === ALL_SECTIONS.length
    ? 'All'
    : sections.map((section) => NAMES[section]).join(', ');
}

const bytes = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 });
/** `84.2 KB`, `1.3 MB`, in powers of 1,000. */
export const fileSize = (size: number) =>
  size < 1_000_000 ? `${bytes.format(size / 1_000)} KB` : `${bytes.format(size / 1_000_000)} MB`;
