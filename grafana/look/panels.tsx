// Grafana's own visual components behind thin plugins. Heatmaps are drawn here, for theirs is not in any package.

import React from 'react';
import {
  cacheFieldDisplayNames, createTheme, dataLinksOverrideProcessor, displayNameOverrideProcessor, FieldColorModeId, FieldConfigProperty, getDisplayValueAlignmentFactors,
  getFieldDisplayValues,
  identityOverrideProcessor, numberOverrideProcessor, PanelPlugin, standardEditorsRegistry, standardFieldConfigEditorRegistry,
  standardTransformers, standardTransformersRegistry, ThresholdsMode, thresholdsOverrideProcessor, unitOverrideProcessor,
  valueMappingsOverrideProcessor, getValueFormat, formattedValueToString,
} from '@grafana/data';
import { BarGauge, BigValue, TimeSeries, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { issues } from './source';

export const theme = createTheme({ colors: { mode: 'dark' } });

const kinds: Record<string, (panel: any) => React.ReactNode> = {
  timeseries: (panel) => (
    <TimeSeries frames={panel.data.series} timeRange={panel.timeRange} timeZone={panel.timeZone} width={panel.width} height={panel.height}
      legend={panel.options.legend} options={panel.options} replaceVariables={panel.replaceVariables} />
  ),
  stat: (panel) => repeated(panel, values(panel), ({ value, width, height, count }) => (
    <BigValue count={count} value={value.display} width={width} height={height} theme={theme} colorMode={panel.options.colorMode} graphMode={panel.options.graphMode}
      justifyMode={panel.options.justifyMode} textMode={panel.options.textMode} disableWideLayout={!panel.options.wideLayout} sparkline={value.sparkline} />
  )),
  bargauge: (panel) => repeated(panel, values(panel), ({ value, width, height, alignmentFactors }) => (
    <BarGauge value={value.display} field={value.field} display={value.view?.getFieldDisplayProcessor?.(value.colIndex)} width={width} height={height}
      theme={theme} displayMode={panel.options.displayMode} orientation={panel.options.orientation} alignmentFactors={alignmentFactors}
      showUnfilled={panel.options.showUnfilled} text={panel.options.text} valueDisplayMode={panel.options.valueMode} namePlacement={panel.options.namePlacement} />
  ), { minVizHeight: panel.options.minVizHeight, maxVizHeight: panel.options.maxVizHeight, itemSpacing: 6 }),
  table: (panel) => panel.data.series.length ? (
    <TableNG data={panel.data.series[0]} width={panel.width} height={panel.height} fieldConfig={panel.fieldConfig} structureRev={panel.data.structureRev ?? 1}
      timeRange={panel.timeRange} initialSortBy={panel.options.sortBy} cellHeight={panel.options.cellHeight} getActions={() => []} />
  ) : <div>No data</div>,
  heatmap: (panel) => <Heat {...panel} />,
};

function values(panel: any) {
  return getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables: panel.replaceVariables, theme,
    data: panel.data.series, sparkline: panel.options.graphMode === 'area', timeZone: panel.timeZone,
  });
}

function repeated(panel: any, shown: any[], renderValue: any, more: object = {}) {
  return (
    <VizRepeater source={panel.data} width={panel.width} height={panel.height} getValues={() => shown} renderValue={renderValue}
      renderCounter={panel.renderCounter} orientation={panel.options.orientation ?? 'auto'} getAlignmentFactors={getDisplayValueAlignmentFactors} {...more} />
  );
}

function Heat(panel: any) {
  const rows = [...panel.data.series].reverse();
  const format = getValueFormat(panel.options.yAxis?.unit);
  const times: number[] = [...new Set<number>(rows.flatMap((row: any) => row.fields[0].values))].sort((one, other) => one - other);
  const step = times[1] - times[0] || 0; // a cell ends at its time
  const most = Math.max(1, ...rows.flatMap((row: any) => row.fields[1].values));
  const [left, bottom] = [64, 22];
  const [cell, line] = [(panel.width - left) / Math.max(1, times.length), (panel.height - bottom) / Math.max(1, rows.length)];
  const label = (le: string) => (le === '+Inf' ? '+Inf' : formattedValueToString(format(Number(le))));
  return (
    <svg width={panel.width} height={panel.height} fontSize={11} fill={theme.colors.text.secondary}>
      {rows.map((row: any, y: number) => (
        <g key={y}>
          <text x={left - 8} y={(y + 0.5) * line + 4} textAnchor="end">{label(row.fields[1].labels.le)}</text>
          {row.fields[0].values.map((at: number, i: number) => row.fields[1].values[i] > 0 && (
            <rect key={at} x={left + times.indexOf(at) * cell} y={y * line} width={Math.max(1, cell - 1)} height={Math.max(1, line - 1)}
              fill={`hsl(28, 85%, ${25 + 55 * Math.sqrt(row.fields[1].values[i] / most)}%)`} />
          ))}
        </g>
      ))}
      {[0, 0.25, 0.5, 0.75].map((part) => (
        <text key={part} x={left + part * (panel.width - left)} y={panel.height - 6}>
          {new Date(times[Math.floor(part * times.length)] - step).toISOString().slice(5, 16).replace('T', ' ')}
        </text>
      ))}
    </svg>
  );
}

// What Grafana registers at its start: standard options, transformations, and the custom options of each kind of panel.
export function register() {
  const option = (id: string, process: any, more: object = {}) =>
    ({ id, path: id, name: id, description: '', editor: () => null, override: () => null, process, settings: {}, shouldApply: () => true, ...more }) as any;
  const green = { mode: ThresholdsMode.Absolute, steps: [{ value: -Infinity, color: 'green' }, { value: 80, color: 'red' }] };
  standardFieldConfigEditorRegistry.setInit(() => [
    option('displayName', displayNameOverrideProcessor), option('unit', unitOverrideProcessor), option('min', numberOverrideProcessor),
    option('max', numberOverrideProcessor), option('decimals', numberOverrideProcessor, { settings: { integer: true } }),
    option('thresholds', thresholdsOverrideProcessor, { defaultValue: green }), option('mappings', valueMappingsOverrideProcessor),
    option('noValue', displayNameOverrideProcessor), option('links', dataLinksOverrideProcessor), option('color', identityOverrideProcessor),
    option('filterable', identityOverrideProcessor), option('fieldMinMax', identityOverrideProcessor), option('actions', identityOverrideProcessor),
  ]);
  standardEditorsRegistry.setInit(() => []);
  const transformers = new Map(Object.values(standardTransformers).map((each: any) => [each.id, each]));
  standardTransformersRegistry.setInit(() => [...transformers.values()].map((each: any) =>
    ({ id: each.id, transformation: each, name: each.name, editor: () => null }) as any));
}

const CUSTOM = [
  'drawStyle', 'lineWidth', 'fillOpacity', 'gradientMode', 'lineInterpolation', 'showPoints', 'pointSize', 'spanNulls', 'stacking', 'axisPlacement',
  'axisLabel', 'axisColorMode', 'axisCenteredZero', 'axisSoftMin', 'axisSoftMax', 'scaleDistribution', 'thresholdsStyle', 'hideFrom', 'barAlignment',
  'insertNulls', 'lineStyle', 'axisWidth', 'axisGridShow', 'axisBorderShow', 'fillBelowTo', 'transform', 'barWidthFactor', 'align', 'cellOptions',
  'inspect', 'width', 'minWidth', 'filterable', 'hidden',
];
const DEFAULTS: Record<string, unknown> = {
  drawStyle: 'line', lineWidth: 1, fillOpacity: 0, gradientMode: 'none', lineInterpolation: 'linear', showPoints: 'auto', pointSize: 5,
  stacking: { mode: 'none', group: 'A' }, axisPlacement: 'auto', scaleDistribution: { type: 'linear' }, hideFrom: { tooltip: false, viz: false, legend: false },
};
const made: Record<string, PanelPlugin> = {};

export function plugin(kind: string): PanelPlugin {
  if (!made[kind]) {
    if (!kinds[kind]) {
      issues.push(`a kind of panel that is not drawn here: ${kind}`);
    }
    made[kind] = newPlugin(kind, kinds[kind] ?? (() => <div>{kind}</div>));
  }
  return made[kind];
}

function newPlugin(kind: string, draw: (panel: any) => React.ReactNode): PanelPlugin {
  const shown: Set<string> = ((window as any).SHOWN ??= new Set());
  const Drawn = (panel: any) => {
    shown.add(panel.title);
    cacheFieldDisplayNames(panel.data.series);
    return <>{draw(panel)}</>;
  };
  const colour = kind === 'timeseries' ? FieldColorModeId.PaletteClassic : FieldColorModeId.Thresholds;
  const added: any = new PanelPlugin(Drawn as any);
  added.meta = { id: kind, name: kind, info: { version: '12.4.10' }, module: '', baseUrl: '', type: 'panel' };
  added.useFieldConfig({
    standardOptions: { [FieldConfigProperty.Color]: { defaultValue: { mode: colour } } },
    useCustomConfig: (builder: any) => CUSTOM.forEach((id) => builder.addCustomEditor({
      id, path: id, name: id, editor: () => null, override: () => null, process: identityOverrideProcessor, shouldApply: () => true,
      defaultValue: kind === 'timeseries' ? DEFAULTS[id] : undefined,
    })),
  });
  return added;
}
