import css from './Fields.module.css';

/** A UTC day, YYYY-MM-DD. */
export function DateField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <label className={css.field}>
      <span className={css.label}>{label}</span>
      <input
        className={css.input}
        type="date"
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

/** A UTC month, YYYY-MM. Browsers without a picker of months show a text field. */
export function MonthField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <label className={css.field}>
      <span className={css.label}>{label}</span>
      <input
        className={css.input}
        type="month"
        pattern="[0-9]{4}-[0-9]{2}"
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}
