/** Dimensions of usage: the name of a row, and the filter of the list of calls where the API has one. */
export const DIMENSIONS = {
  model: { label: 'Model', filter: 'model' },
  provider: { label: 'Provider', filter: 'provider' },
  team: { label: 'Team', filter: 'team_id' },
  feature: { label: 'Feature', filter: 'feature' },
  project: { label: 'Project', filter: 'project_id' },
  user: { label: 'User', filter: undefined },
  session: { label: 'Session', filter: 'session_id' },
} as const;

export type Dimension = keyof typeof DIMENSIONS;

export const DIMENSION_OPTIONS = Object.entries(DIMENSIONS).map(([value, { label }]) => ({
  value: value as Dimension,
  label,
}));

/** The key of calls without a value of the dimension. */
export const UNSET = '<unset>';
export const isUnset = (key: string) => key === '' || key === UNSET;
