import type { ComponentProps } from 'react';
import css from './Fields.module.css';

interface PickerProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}

/** A UTC day, YYYY-MM-DD. */
export const DateField = (props: PickerProps) => <Picker {...props} type="date" />;

/** A UTC month, YYYY-MM. Browsers without a picker of months show a text field. */
export const MonthField = (props: PickerProps) => (
  <Picker {...props} type="month" pattern="[0-9]{4}-[0-9]{2}" />
);

function Picker({
  label,
  onChange,
  ...input
}: PickerProps & Pick<ComponentProps<'input'>, 'type' | 'pattern'>) {
  return (
    <label className={css.field}>
      <span className={css.label}>{label}</span>
      <input className={css.input} {...input} onChange={(event) => onChange(event.target.value)} />
    </label>
  );
}
